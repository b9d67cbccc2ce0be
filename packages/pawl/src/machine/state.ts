import type { StandardSchemaV1 } from "@standard-schema/spec";
import { isPlain } from "../core/options.ts";
import { parseWith } from "../core/schema.ts";

/** What all patches so far make, whatever its types. */
export type State = Readonly<Record<string, unknown>>;

/**
 * What a machine starts with: what the schema makes of an empty object, if it takes one. A copy, since a schema may give
 * its defaults away as they are.
 */
export async function initialState(schema: StandardSchemaV1 | undefined): Promise<State> {
  const result = await schema?.["~standard"].validate({});
  return result === undefined || result.issues !== undefined
    ? {}
    : freeze(structuredClone(result.value) as State);
}

/**
 * Refuses a state that its schema refuses. A key that is not there yet is no fault: steps fill the state one by one. What
 * the schema makes of it is left out, since it would be made again with every patch.
 * @throws {PawlError} `INVALID_PAYLOAD`
 */
export async function assertState(schema: StandardSchemaV1 | undefined, state: State): Promise<void> {
  if (schema === undefined) return;
  const lenient: StandardSchemaV1 = {
    "~standard": {
      version: 1,
      vendor: "pawl",
      async validate(value) {
        const { issues } = await schema["~standard"].validate(value);
        const faults = issues?.filter(({ path }) => !isMissing(path?.[0], state)) ?? [];
        return faults.length === 0 ? { value } : { issues: faults };
      },
    },
  };
  await parseWith(lenient, state, "machine's state");
}

function isMissing(segment: PropertyKey | StandardSchemaV1.PathSegment | undefined, state: State): boolean {
  const key = typeof segment === "object" ? segment.key : segment;
  return key !== undefined && state[String(key)] === undefined;
}

/** Handlers share these values, and only what they return counts: code that writes to them is told so. */
export function freeze<Value>(value: Value): Value {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  if (!Array.isArray(value) && !isPlain(value)) return value;
  for (const inner of Object.values(value)) freeze(inner);
  return Object.freeze(value);
}
