import type { StandardSchemaV1 } from "@standard-schema/spec";
import { PawlError } from "./error.ts";

/**
 * Parses a value by its schema; at once where the schema can.
 * @param what names the value in the error
 * @throws {PawlError} `INVALID_PAYLOAD` with the schema's findings
 */
export function parseWith(schema: StandardSchemaV1, value: unknown, what: string): unknown {
  try {
    const result = schema["~standard"].validate(value);
    if (!(result instanceof Promise)) return accept(result, what);
    return result.then((late) => accept(late, what)).catch((error: unknown) => refuse(error, what));
  } catch (error) {
    return refuse(error, what);
  }
}

/** A schema should answer with its findings, and not throw. */
function refuse(error: unknown, what: string): never {
  if (PawlError.is(error)) throw error;
  throw new PawlError("INVALID_PAYLOAD", `The schema of the ${what} threw at it.`, {}, { cause: error });
}

function accept(result: StandardSchemaV1.Result<unknown>, what: string): unknown {
  if (result.issues === undefined) return result.value;
  const issues = result.issues.map((issue) => ({ path: writePath(issue.path), message: issue.message }));
  const found = issues.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ");
  throw new PawlError("INVALID_PAYLOAD", `The ${what} does not fit its schema: ${found}.`, { issues });
}

function writePath(path: StandardSchemaV1.Issue["path"]): string {
  return (path ?? []).map((part) => String(typeof part === "object" ? part.key : part)).join(".");
}
