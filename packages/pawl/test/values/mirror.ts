import { expect } from "vitest";
import { workflow, type Pawl } from "../../src/index.ts";
import { differenceOf } from "../core/rich-value.ts";

/** Returns, or throws, what it is given. */
const echo = workflow(
  { name: "echo", version: 1, retry: { attempts: 1 } },
  async (_ctx, input: { readonly value?: unknown; readonly thrown?: Error }) => {
    if (input.thrown !== undefined) throw input.thrown;
    return input.value;
  },
);

/** Sends its input through every place in which a value is kept. */
export const mirror = workflow({ name: "mirror", version: 1 }, async (ctx, input: unknown) => {
  const kept = await ctx.step("keep", () => input);
  await ctx.sleep(1);
  const signal = await ctx.waitForSignal("value");
  const child = await ctx.call(echo, { value: input });
  return new Map<string, unknown>(Object.entries({ input, kept, signal, child }));
});

/** What a run's code throws, in a step, in a child and at last by itself. */
export const stumble = workflow(
  { name: "stumble", version: 1, retry: { attempts: 2, initial: 0 } },
  async (ctx, input: { readonly thrown: Error }) => {
    const inStep = await ctx
      .step("throw", () => {
        throw input.thrown;
      })
      .catch((error: unknown) => error);
    const inChild = await ctx.call(echo, { thrown: input.thrown }).catch((error: unknown) => error);
    await ctx.step("keep", () => [inStep, inChild]);
    throw input.thrown;
  },
);

export const valueWorkflows = [mirror, echo, stumble];

/** Sends a value through every place, and expects it back from each. */
export async function expectMirrored(pawl: Pawl, value: unknown): Promise<void> {
  const run = await pawl.start(mirror, value);
  await run.signal("value", value);
  const expected = new Map(["input", "kept", "signal", "child"].map((place) => [place, value]));
  expect(differenceOf(await run.result(), expected)).toBe(null);

  const history = await run.history();
  const dataOf = (kind: string): unknown => history.find((event) => event.kind === kind)!.data;
  expect(differenceOf(dataOf("step_completed"), value)).toBe(null);
  expect(differenceOf(dataOf("signal_received"), value)).toBe(null);
  expect(differenceOf((dataOf("child_ended") as { output: unknown }).output, value)).toBe(null);
  const read = await pawl.get(run.id);
  expect(differenceOf(read!.input, value)).toBe(null);
  expect(differenceOf(read!.output, expected)).toBe(null);
}
