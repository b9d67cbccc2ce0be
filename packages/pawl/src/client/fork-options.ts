import { checkList, checkName, checkOptions, type Check } from "../core/options.ts";

/** From where to fork a run, and what is different in the fork. */
export interface ForkOptions {
  /** The step, sleep, wait or child that runs anew: its name, or its key as the history has it. What came before is kept. */
  readonly from: string;
  /** In place of the source's. What is kept was done with the old one. Default: the source's. */
  readonly input?: unknown;
  /** Makes the fork idempotent: one run per key, for ever. Default: none. */
  readonly key?: string;
  /** Default: the source's. */
  readonly tags?: readonly string[];
  /** Default: the source's. */
  readonly queue?: string;
}

/** @throws {PawlError} `INVALID_OPTION` */
export function readForkOptions(options: ForkOptions): ForkOptions {
  const any: Check = () => null;
  const tags: Check = (value) =>
    Array.isArray(value) && value.length === 0 ? null : checkList(checkName, 100)(value);
  // Longer than a name: a key holds its scopes too.
  const from: Check = (value) => (typeof value === "string" && value !== "" ? null : "must name a step");
  return checkOptions(
    "fork",
    options,
    { from, input: any, key: checkName, tags, queue: checkName },
    { required: ["from"] },
  );
}
