import { readFileSync } from "node:fs";
import type pg from "pg";

/** Processor time that this connection's server process has used. Null: it runs elsewhere, or the system does not tell. */
export function processorMsOf(client: pg.ClientBase): number | null {
  const { processID } = client as unknown as { readonly processID: number };
  try {
    if (!readFileSync(`/proc/${processID}/comm`, "utf8").startsWith("postgres")) return null;
    const [nanoseconds] = readFileSync(`/proc/${processID}/schedstat`, "utf8").split(" ");
    return Number(nanoseconds) / 1e6;
  } catch {
    return null;
  }
}
