import { PawlError, workflow, type Pawl } from "../../packages/pawl/src/index.ts";
import { errorProperties } from "../../packages/pawl/test/bad-input/junk.ts";

const makers = new Map<string, () => unknown>();

/** How a value leaves a workflow's code: by itself, or on an error. */
export const waysToThrow = [
  "throw …",
  ...errorProperties.map((property) => `throw an error whose ${property} is …`),
];

/** Throws one value out of a step, then out of itself. */
export const throwing = workflow(
  { name: "throwing", version: 1, retry: { attempts: 1 } },
  async (ctx, { way, maker }: { readonly way: string; readonly maker: string }) => {
    const thrown = (): unknown => decorate(way, makers.get(maker)?.());
    await ctx
      .step("throw", () => {
        throw thrown();
      })
      .catch(() => {});
    throw thrown();
  },
);

function decorate(way: string, value: unknown): unknown {
  const property = /whose (\w+) is/.exec(way)?.[1];
  if (property === undefined) return value;
  const error = property === "errors" ? new AggregateError([], "some") : new Error("with a property");
  return Object.defineProperty(error, property, { value, enumerable: true });
}

/** Has a run throw it, and says what became of the run. */
export async function throwIt(pawl: Pawl, way: string, make: () => unknown): Promise<string> {
  const maker = String(makers.size);
  makers.set(maker, make);
  const run = await pawl.start(throwing, { way, maker });
  try {
    await run.result();
    return "did not fail";
  } catch (error) {
    if (!PawlError.is(error, "RUN_FAILED")) throw error;
    const [{ length }, read] = [JSON.stringify(await run.history()), await pawl.get(run.id)];
    if (length > mostRecorded) return `left a record of ${length} characters`;
    return read?.error instanceof Error ? "accepted" : "left no error";
  }
}

const mostRecorded = 1_000_000;
