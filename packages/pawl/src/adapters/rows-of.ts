import { PawlError } from "../core/error.ts";

/** The rows of an answer, which libraries give bare or inside a result. */
export function rowsOf(answer: unknown): { readonly rows: readonly unknown[] } {
  if (Array.isArray(answer)) return { rows: answer };
  if (typeof answer === "object" && answer !== null && "rows" in answer && Array.isArray(answer.rows))
    return { rows: answer.rows };
  throw new PawlError("INTERNAL", "The transaction's library answered no rows. Please report its version.");
}
