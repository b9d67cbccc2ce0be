import { fc } from "pawl-test-support/fast-check";
import { expect, test } from "vitest";
import { decode } from "../../src/core/codec.ts";
import { PawlError } from "../../src/core/error.ts";
import { workflow } from "../../src/runtime/workflow.ts";
import { createEngine, type EngineOptions } from "../runtime/engine.ts";

/** A step of a saga; those of one group run at once. */
interface Part {
  readonly group: number;
  readonly hasUndo: boolean;
  readonly ms: number;
  /** So many attempts at it, and at its undo, fail first. */
  readonly flaky: number;
  readonly undoFlaky: number;
  readonly onCrash: "retry" | "fail";
}

const parts = fc.array(
  fc.record<Part>({
    group: fc.integer({ min: 0, max: 3 }),
    hasUndo: fc.boolean(),
    ms: fc.constantFrom(0, 0, 500),
    flaky: fc.constantFrom(0, 0, 1),
    undoFlaky: fc.constantFrom(0, 0, 1, 2, 3),
    onCrash: fc.constantFrom("retry", "retry", "fail"),
  }),
  { minLength: 1, maxLength: 6 },
);

/** How it ends: its code fails, or it is cancelled after this many ms. */
const endings = fc.oneof(
  fc.constant("fails" as const),
  fc.constantFrom(0, 400, 1_000, 65_000).map((cancelMs) => ({ cancelMs })),
);

const faults = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.constant("none") },
    { weight: 2, arbitrary: fc.constantFrom("crash before", "crash after", "fail before", "fail after") },
  ),
  { maxLength: 40 },
);

function withFaults(plan: readonly string[], isSticky: boolean): EngineOptions {
  return {
    isSticky,
    crashAt: (call, when) => plan[call - 1] === `crash ${when}`,
    failAt: (call, when) => plan[call - 1] === `fail ${when}`,
  };
}

const runs = Number(process.env["PAWL_PROPERTY_RUNS"] ?? 80);

test("a saga that is interrupted anywhere undoes all that happened, the last first, and nothing else", async () => {
  await fc.assert(
    fc.asyncProperty(parts, endings, faults, fc.boolean(), async (saga, ending, plan, isSticky) => {
      const engine = createEngine(withFaults(plan, isSticky));
      /** What has happened outside and was not taken back. */
      const standing = new Map<string, number>();
      const calls = new Map<string, number>();
      const retry = { delays: ["1s", "1m"], jitter: false } as const;
      const tested = workflow(
        { name: "saga", version: 1, crashLimit: 1_000, retry: { attempts: 1 } },
        async (ctx) => {
          const step = ({ hasUndo, ms, flaky, undoFlaky, onCrash }: Part, name: string) =>
            ctx.step(
              name,
              async ({ attempt, signal }) => {
                calls.set(name, (calls.get(name) ?? 0) + 1);
                if (ms > 0) await engine.delay(ms);
                // Its process is dead: what it does then does not happen.
                if (PawlError.is(signal.reason, "LEASE_LOST")) throw signal.reason;
                if (attempt <= flaky) throw new Error("not yet");
                standing.set(name, (standing.get(name) ?? 0) + 1);
                return name;
              },
              {
                retry,
                onCrash,
                ...(hasUndo && {
                  undo: (result: string, { attempt, inDoubt }: { attempt: number; inDoubt: boolean }) => {
                    expect(result).toBe(inDoubt ? undefined : name);
                    if (attempt <= undoFlaky) throw new Error("not yet undone");
                    standing.delete(name);
                  },
                  undoRetry: retry,
                }),
              },
            );
          for (let group = 0; group <= 3; group++) {
            const members = saga.flatMap((part, index) =>
              part.group === group ? [step(part, `${index}`)] : [],
            );
            await Promise.all(members);
          }
          if (ending !== "fails") await ctx.waitForSignal("never");
          throw new Error("no");
        },
      );
      const id = await engine.start(tested);
      if (ending !== "fails") {
        await engine.pass(ending.cancelMs);
        await engine.tell(id, "cancel");
      }
      const run = await engine.end(id);
      expect(run.status).toMatch(/failed|cancelled/);

      const history = await engine.history(id);
      const settled = history.filter(({ kind }) => kind === "undo_completed" || kind === "undo_failed");
      const notUndone = settled.flatMap(({ kind, name }) => (kind === "undo_failed" ? [name!] : []));
      const error = decode(run.error) as { readonly notUndone?: readonly string[] } | undefined;
      expect((error?.notUndone ?? []).toSorted()).toEqual(notUndone.toSorted());
      // What stands is what nothing undoes, and what is reported.
      for (const name of standing.keys()) {
        if (saga[Number(name)]!.hasUndo) expect(notUndone).toContain(name);
      }
      for (const name of notUndone) expect(saga[Number(name)]!.undoFlaky).toBe(3);
      // Once each, and the completed ones in reverse.
      const names = settled.map(({ name }) => name!);
      expect(new Set(names).size).toBe(names.length);
      const completed = history.flatMap(({ kind, name }) => (kind === "step_completed" ? [name!] : []));
      const undone = names.filter((name) => completed.includes(name));
      const expected = completed.filter((name) => saga[Number(name)]!.hasUndo);
      expect(undone).toEqual(expected.toReversed());
      for (const [index, { onCrash, flaky }] of saga.entries()) {
        if (onCrash === "fail") expect(calls.get(`${index}`) ?? 0).toBeLessThanOrEqual(flaky + 1);
      }
    }),
    { numRuns: runs },
  );
});
