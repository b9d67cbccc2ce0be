import { workflow } from "../../packages/pawl/src/index.ts";

/** A run that does nothing but return: many are started together, and none has a key. */
export const job = workflow(
  { name: "job", version: 1 },
  async (_ctx, input: { readonly n: number }) => input.n,
);
