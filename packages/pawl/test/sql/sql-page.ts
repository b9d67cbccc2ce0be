import { readFileSync } from "node:fs";

const page = readFileSync(new URL("../../../../docs/sql.md", import.meta.url), "utf8");

/** What a heading of the page holds, up to the next one of its level or a higher one. */
export function section(heading: string): string {
  const level = /^#+/.exec(heading)![0].length;
  const [, after] = page.split(`\n${heading}\n`);
  if (after === undefined) throw new Error(`docs/sql.md has no heading "${heading}".`);
  return after.split(new RegExp(`^#{1,${level}} `, "m"))[0]!;
}

/** The cells of the tables in a part of the page, without their headings. */
export function tableRows(text: string): readonly (readonly string[])[] {
  return text
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .map((line) => line.split(/(?<!\\)\|/).map((cell) => cell.trim()))
    .map((cells) => cells.slice(1, -1))
    .filter((cells, index, all) => !isRule(cells) && !isRule(all[index + 1] ?? []));
}

const isRule = (cells: readonly string[]): boolean =>
  cells.length > 0 && cells.every((cell) => /^-+$/.test(cell));

/** The parts below the headings of the next level, by their titles. */
export function parts(heading: string): ReadonlyMap<string, string> {
  const marks = `\n${/^#+/.exec(heading)![0]}# `;
  const [, ...found] = `\n${section(heading)}`.split(marks);
  return new Map(found.map((part) => [part.slice(0, part.indexOf("\n")), part.slice(part.indexOf("\n"))]));
}

export interface SupportQuery {
  readonly title: string;
  readonly sql: string;
}

/** The page's ready queries, in its words. */
export const supportQueries: readonly SupportQuery[] = [...parts("## Support queries")].map(
  ([title, text]) => ({
    title,
    sql: /```sql\n(.*?)```/s.exec(text)![1]!,
  }),
);

/** As `psql` does it: `:'name'` becomes a literal. */
export function withVariables(sql: string, variables: Readonly<Record<string, string>>): string {
  return sql.replaceAll(/:'(\w+)'/g, (_, name: string) => `'${variables[name]!}'`);
}
