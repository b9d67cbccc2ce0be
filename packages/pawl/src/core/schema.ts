import type { StandardSchemaV1 } from "@standard-schema/spec";
import { PawlError } from "./error.ts";
import { isThenable } from "./thenable.ts";

/**
 * Parses a value by its schema; at once where the schema can.
 * @param what names the value in the error
 * @throws {PawlError} `INVALID_PAYLOAD` with the schema's findings
 */
export function parseWith(schema: StandardSchemaV1, value: unknown, what: string): unknown {
  try {
    const result = schema["~standard"].validate(value);
    if (!isThenable(result)) return accept(result, what);
    return Promise.resolve(result)
      .then((late) => accept(late, what))
      .catch((error: unknown) => refuse(error, what));
  } catch (error) {
    return refuse(error, what);
  }
}

/** A schema should answer with its findings, and not throw. */
function refuse(error: unknown, what: string): never {
  if (PawlError.is(error)) throw error;
  throw new PawlError("INVALID_PAYLOAD", `The schema of the ${what} threw at it.`, {}, { cause: error });
}

/** It is somebody else's code: of what it says, so much is told. */
const mostIssues = 20;
const longestText = 200;
const longestPath = 20;

function accept(result: StandardSchemaV1.Result<unknown>, what: string): unknown {
  if (result.issues === undefined) return result.value;
  const issues = result.issues
    .slice(0, mostIssues)
    .map(({ path, message }) => ({ path: shorten(writePath(path)), message: shorten(message) }));
  const found = issues.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ");
  const left = result.issues.length - issues.length;
  const more = left > 0 ? `; and ${left} more` : "";
  throw new PawlError("INVALID_PAYLOAD", `The ${what} does not fit its schema: ${found}${more}.`, { issues });
}

function writePath(path: StandardSchemaV1.Issue["path"]): string {
  return (path ?? [])
    .slice(0, longestPath)
    .map((part) => String(typeof part === "object" ? part.key : part))
    .join(".");
}

function shorten(text: string): string {
  return text.length > longestText ? `${text.slice(0, longestText)}…` : text;
}
