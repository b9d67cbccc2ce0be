import { canonicalJson } from "../core/canonical-json.ts";
import type { Payload } from "../core/json.ts";

/** Whether two inputs are the same value: JSON and notes alike, or the codec's digest of both. */
export function isSameInput(a: Payload | null, b: Payload | null): boolean {
  if (a === null || b === null) return a === b;
  return (a.json === b.json && a.notes === b.notes) || comparable(a) === comparable(b);
}

function comparable({ json, notes }: Payload): string {
  if (notes === null) return canonicalJson(json);
  const { digest } = JSON.parse(notes) as { readonly digest?: string };
  return digest === undefined ? `${canonicalJson(json)} ${canonicalJson(notes)}` : `digest ${digest}`;
}
