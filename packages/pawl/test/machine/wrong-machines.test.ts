import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../../../..");
const require = createRequire(import.meta.url);

/** A machine with these steps, beside two that are right. */
const withSteps = (steps: string, start = "first"): string => `
import { machine } from ${JSON.stringify(join(root, "packages/pawl/src/index.ts"))};
import { z } from "zod";
export const made = machine({
  name: "made", version: 1, start: ${JSON.stringify(start)},
  input: z.object({ id: z.number() }),
  state: z.object({ hold: z.string(), tries: z.number() }),
  output: z.object({ ok: z.boolean() }),
  signals: { shipped: z.object({ carrier: z.string() }) },
  steps: {
    first: { run: ({ next }) => next("last", { hold: "a" }) },
    last: { run: ({ complete }) => complete({ ok: true }) },
    ${steps}
  },
});
`;

/** What is wrong, and what the compiler says of it: all of it, but for where. */
const wrong: Readonly<Record<string, readonly [program: string, message: RegExp]>> = {
  "a next to an unknown step": [
    withSteps(`wrong: { run: ({ next }) => next("lost") }`),
    /^Argument of type '"lost"' is not assignable to parameter of type '"first" \| "last" \| "wrong"'\.$/,
  ],
  "a static next to an unknown step": [
    withSteps(`wrong: { run: () => ({ tries: 1 }), next: "lost" }`),
    /^Type '"lost"' is not assignable to type '"first" \| "last" \| "wrong"'\.$/,
  ],
  "an unknown start": [
    withSteps("", "lost"),
    /^Type '"lost"' is not assignable to type '"first" \| "last"'\.$/,
  ],
  "a sleep that leads to an unknown step": [
    withSteps(`wrong: { run: ({ sleepUntil, now }) => sleepUntil(now + 1, "lost") }`),
    /^Argument of type '"lost"' is not assignable to parameter of type '"first" \| "last" \| "wrong"'\.$/,
  ],
  "a wait that leads to an unknown step": [
    withSteps(`wrong: { run: ({ waitForSignal }) => waitForSignal("shipped", { then: "lost" }) }`),
    /^Type '"lost"' is not assignable to type '"first" \| "last" \| "wrong"'\.$/,
  ],
  "an unknown signal": [
    withSteps(`wrong: { run: ({ waitForSignal }) => waitForSignal("sipped", { then: "last" }) }`),
    /^Argument of type '"sipped"' is not assignable to parameter of type '"shipped"'\.$/,
  ],
  "a key that the state does not have": [
    withSteps(`wrong: { run: ({ next }) => next("last", { hold: "a", hlod: "b" }) }`),
    /^Type '"b"' is not assignable to type '"The state has no \\"hlod\\""'\.$/,
  ],
  "a value of another type": [
    withSteps(`wrong: { run: ({ next }) => next("last", { hold: 1 }) }`),
    /^Type 'number' is not assignable to type 'string'\.$/,
  ],
  "a returned patch with a key that the state does not have": [
    withSteps(`wrong: { run: async ({ input }) => ({ tries: input.id, more: 1 }), next: "last" }`),
    /^Type '"last"' is not assignable to type '"The state has no \\"more\\""'\.$/,
  ],
  "one of several returned patches with a key that the state does not have": [
    withSteps(
      `wrong: { run: async ({ input }) => { if (input.id > 1) return { more: 1 }; return { tries: 1 }; }, next: "last" }`,
    ),
    /^Type '"last"' is not assignable to type '"The state has no \\"more\\""'\.$/,
  ],
  "a returned patch of another type": [
    withSteps(`wrong: { run: ({ input }) => ({ hold: input.id }), next: "last" }`),
    /^Type '"last"' is not assignable to type '"What the step returns is no patch of the state"'\.$/,
  ],
  "a result of another type": [
    withSteps(`wrong: { run: ({ complete }) => complete({ ok: "yes" }) }`),
    /^Type 'string' is not assignable to type 'boolean'\.$/,
  ],
  "no result": [
    withSteps(`wrong: { run: ({ complete }) => complete() }`),
    /^Expected 1 arguments, but got 0\.$/,
  ],
  "a step with neither an outcome nor a next": [
    withSteps(`wrong: { run: () => ({ tries: 1 }) }`),
    /Property 'next' is missing in type '.*' but required in type 'MustLead<"first" \| "last" \| "wrong">'\.$/,
  ],
  "a step that returns nothing and has no next": [
    withSteps(`wrong: { run: async ({ input }) => void input }`),
    /Property 'next' is missing in type '.*' but required in type 'MustLead<"first" \| "last" \| "wrong">'\.$/,
  ],
  "a signal's payload without a look at its type": [
    withSteps(`wrong: { run: ({ wake, complete }) => complete({ ok: wake.signal.carier === "a" }) }`),
    /^Property 'carier' does not exist on type '\{ carrier: string; \}'\. Did you mean 'carrier'\?$/,
  ],
  "a signal where the time was over": [
    withSteps(
      `wrong: { run: ({ wake, complete }) => complete({ ok: wake.kind !== "signal" && wake.signal.carrier === "a" }) }`,
    ),
    /^Property 'carrier' does not exist on type 'never'\.$/,
  ],
  "a change of the state": [
    withSteps(`wrong: { run: ({ state, next }) => { state.hold = "b"; return next("last"); } }`),
    /^Cannot assign to 'hold' because it is a read-only property\.$/,
  ],
};

test(
  "a wrong machine does not compile, and the compiler says why in a line",
  { timeout: 120_000 },
  async () => {
    const dir = await mkdtemp(join(tmpdir(), "pawl-wrong-"));
    try {
      const programs = [withSteps(""), ...Object.values(wrong).map(([program]) => program)];
      const names = programs.map((_, index) => `wrong-${index}.mts`);
      for (const [index, program] of programs.entries()) await writeFile(join(dir, names[index]!), program);
      await writeFile(
        join(dir, "tsconfig.json"),
        JSON.stringify({
          extends: join(root, "tsconfig.base.json"),
          compilerOptions: {
            noEmit: true,
            incremental: false,
            typeRoots: [join(root, "node_modules/@types")],
            paths: { zod: [join(dirname(require.resolve("zod/package.json")), "index.d.ts")] },
          },
          files: names,
        }),
      );
      const tsc = join(dirname(require.resolve("typescript/package.json")), "bin/tsc");
      const { stdout } = await promisify(execFile)(process.execPath, [
        tsc,
        "-p",
        dir,
        "--pretty",
        "false",
      ]).catch((error: unknown) => error as { readonly stdout: string });
      const said = new Map<string, string[]>();
      let at = "";
      for (const line of stdout.trimEnd().split("\n")) {
        const [, file, message = line.trim()] =
          /^(?:.*[\\/])?(wrong-\d+\.mts)\(\d+,\d+\): error TS\d+: (.*)$/.exec(line) ?? [];
        at = file ?? at;
        said.set(at, [...(said.get(at) ?? []), message]);
      }
      expect(said.get("wrong-0.mts")).toBeUndefined();
      for (const [index, [what, [, message]]] of Object.entries(wrong).entries()) {
        const lines = said.get(`wrong-${index + 1}.mts`) ?? [];
        // The last line says it. There is one, but where a property is missing.
        expect.soft(lines.at(-1), what).toMatch(message);
        expect.soft(lines.length, what).toBeLessThanOrEqual(message.source.startsWith("^") ? 1 : 2);
      }
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  },
);
