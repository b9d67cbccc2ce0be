import type { StandardSchemaV1 } from "@standard-schema/spec";
import { longestDurationMs } from "./duration.ts";
import { PawlError } from "./error.ts";
import { nameFault } from "./name.ts";

/** The signals a workflow declares: name to schema. With plain `string` keys, none are declared and any is taken. */
export type SignalSchemas = Readonly<Record<string, StandardSchemaV1>>;

/** The values a workflow publishes: key to schema. With plain `string` keys, none are declared and any is published. */
export type PublishedSchemas = Readonly<Record<string, StandardSchemaV1>>;

/** The updates a workflow takes: name to schemas. With plain `string` keys, none are declared and any is taken. */
export type UpdateSchemas = Readonly<
  Record<string, { readonly input: StandardSchemaV1; readonly output?: StandardSchemaV1 }>
>;

/**
 * What a caller must know of a workflow to start it, without its code. `Input` is what `start` takes, `Output` what
 * the run ends with.
 */
export interface WorkflowRef<
  Input = never,
  Output = unknown,
  Signals extends SignalSchemas = SignalSchemas,
  Published extends PublishedSchemas = PublishedSchemas,
  Updates extends UpdateSchemas = UpdateSchemas,
> {
  readonly name: string;
  readonly version: number;
  /** Where its runs go unless the caller says otherwise. */
  readonly queue: string;
  /** Runs that take longer than this end as `timed_out`; null: they may last for ever. */
  readonly timeoutMs: number | null;
  /** Parses what a caller gives; its output is stored as the input. */
  readonly inputSchema: StandardSchemaV1 | null;
  readonly signalSchemas: SignalSchemas | null;
  readonly publishedSchemas: PublishedSchemas | null;
  readonly updateSchemas: UpdateSchemas | null;
  /** Its code is elsewhere, and so are its schemas: the first worker to take a run parses the input. */
  readonly isRef?: true;
  /** Never there: carries the types. */
  readonly "~types"?: {
    readonly input: (input: Input) => void;
    readonly output: Output;
    readonly signals: Signals;
    readonly published: Published;
    readonly updates: Updates;
  };
}

type TypesOf<Ref> = Ref extends { readonly "~types"?: infer Types } ? NonNullable<Types> : never;

/** What `start` takes for this workflow. */
export type InputOf<Ref> =
  TypesOf<Ref> extends { readonly input: (input: infer Input) => void } ? Input : never;

/** What a run of this workflow ends with. */
export type OutputOf<Ref> = TypesOf<Ref> extends { readonly output: infer Output } ? Output : never;

/** The signals this workflow declares. */
export type SignalsOf<Ref> =
  TypesOf<Ref> extends { readonly signals: infer Signals extends SignalSchemas } ? Signals : never;

/** The values this workflow publishes. */
export type PublishedOf<Ref> =
  TypesOf<Ref> extends { readonly published: infer Published extends PublishedSchemas } ? Published : never;

/** The updates this workflow takes. */
export type UpdatesOf<Ref> =
  TypesOf<Ref> extends { readonly updates: infer Updates extends UpdateSchemas } ? Updates : never;

/**
 * The schema declared under this name; null where none are declared.
 * @param what is declared, as in `signal`
 * @throws {PawlError} `INVALID_NAME` where others are
 */
export function schemaOf<Schema>(
  schemas: Readonly<Record<string, Schema>> | null | undefined,
  what: string,
  name: string,
): Schema | null {
  if (schemas === null || schemas === undefined) return null;
  const schema = Object.hasOwn(schemas, name) ? schemas[name] : undefined;
  if (schema !== undefined) return schema;
  const known = Object.keys(schemas);
  const message = `The workflow declares no ${what} "${name}": it knows ${known.join(", ") || "none"}.`;
  throw new PawlError("INVALID_NAME", message, { name, known });
}

/**
 * Refuses what is no workflow, such as one that is not there yet.
 * @param what asks for it, as in `start`
 * @throws {PawlError} `INVALID_OPTION`
 */
export function assertWorkflow(what: string, workflow: unknown): asserts workflow is WorkflowRef {
  if (isWorkflow(workflow)) return;
  const hint = workflow === undefined ? "; is it undefined through a circular import?" : ".";
  throw new PawlError("INVALID_OPTION", `${what} needs a workflow made with workflow() or ref()${hint}`, {
    what,
  });
}

/** Looks at its shape alone: it may come from another copy of the library. */
export function isWorkflow(value: unknown): value is WorkflowRef {
  try {
    if (typeof value !== "object" || value === null) return false;
    const { name, version, queue, timeoutMs, inputSchema } = value as Partial<WorkflowRef>;
    const { signalSchemas, publishedSchemas, updateSchemas } = value as Partial<WorkflowRef>;
    return (
      nameFault(name) === null &&
      isVersion(version) &&
      nameFault(queue) === null &&
      (timeoutMs === null || isTimeout(timeoutMs)) &&
      (inputSchema === null || isSchema(inputSchema)) &&
      [signalSchemas, publishedSchemas, updateSchemas].every((schemas) => typeof schemas === "object")
    );
  } catch {
    return false;
  }
}

function isVersion(version: unknown): boolean {
  return Number.isInteger(version) && (version as number) >= 1 && (version as number) < 2 ** 31;
}

function isTimeout(ms: unknown): boolean {
  return typeof ms === "number" && ms >= 0 && ms <= longestDurationMs;
}

/** Whether this is a Standard Schema; some are functions. */
export function isSchema(value: unknown): value is StandardSchemaV1 {
  const isObject = (typeof value === "object" && value !== null) || typeof value === "function";
  if (!isObject || !("~standard" in value)) return false;
  const standard = value["~standard"];
  return (
    typeof standard === "object" &&
    standard !== null &&
    "validate" in standard &&
    typeof standard.validate === "function"
  );
}
