import type { Payload } from "../core/json.ts";
import { compareText } from "./sorted-list.ts";

/** Whether two inputs are the same JSON value: key order, white space and number spelling do not matter. */
export function isSameJson(a: Payload | null, b: Payload | null): boolean {
  if (a === null || b === null) return a === b;
  return a.json === b.json || canonical(JSON.parse(a.json)) === canonical(JSON.parse(b.json));
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const entries = Object.entries(value).sort(([a], [b]) => compareText(a, b));
  return `{${entries.map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`).join(",")}}`;
}
