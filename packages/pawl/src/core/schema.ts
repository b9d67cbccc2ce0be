import type { StandardSchemaV1 } from "@standard-schema/spec";
import { PawlError } from "./error.ts";

/**
 * Parses a value by its schema; at once where the schema can.
 * @param what names the value in the error
 * @throws {PawlError} `INVALID_PAYLOAD` with the schema's findings
 */
export function parseWith(schema: StandardSchemaV1, value: unknown, what: string): unknown {
  const result = schema["~standard"].validate(value);
  return result instanceof Promise ? result.then((late) => accept(late, what)) : accept(result, what);
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
