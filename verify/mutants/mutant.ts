import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A mistake in the engine's source, which `npm run verify` must find. */
export interface Mutant {
  /** Of its file, which ends in `.patch`. */
  readonly name: string;
  readonly path: string;
  /** What is wrong, in a sentence. */
  readonly says: string;
  /** The invariants that it may break. */
  readonly breaks: readonly string[];
  /** Its number among those that other engines have had; null: it is one of ours. */
  readonly planted: number | null;
  /** Whether it changes what the schema is made from. */
  readonly isInSql: boolean;
}

/** @throws where one of these names is no mutant's; without names, all of them */
export function readMutants(names: readonly string[] = []): readonly Mutant[] {
  const all = readdirSync(import.meta.dirname)
    .filter((file) => file.endsWith(".patch"))
    .map((file) => file.slice(0, -".patch".length))
    .toSorted();
  const unknown = names.filter((name) => !all.includes(name));
  if (unknown.length > 0)
    throw new Error(`There is no mutant ${unknown.join(", ")}. There are: ${all.join(", ")}.`);
  return (names.length === 0 ? all : names).map(readMutant);
}

function readMutant(name: string): Mutant {
  const path = join(import.meta.dirname, `${name}.patch`);
  const text = readFileSync(path, "utf8");
  const [header = "", ...changes] = text.split(/^diff --git /m);
  const breaks = /^Breaks: (.+)$/m.exec(header)?.[1]?.split(", ");
  const planted = /^Planted: (\d+)/m.exec(header)?.[1];
  const says = header.split("\n\n")[0]?.replaceAll("\n", " ").trim() ?? "";
  if (breaks === undefined || says === "" || changes.length === 0)
    throw new Error(
      `${name}.patch must begin with what is wrong, then "Breaks: " and invariants, then the changes.`,
    );
  const isInSql = changes.some((change) => /^a\/\S+\.sql /.test(change));
  return { name, path, says, breaks, planted: planted === undefined ? null : Number(planted), isInSql };
}
