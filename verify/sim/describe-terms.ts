import type { Terms } from "./schedule.ts";

/** The world in words: its programs as pseudo-code, what callers do with them, and the faults. What is zero or null is left out. */
export function describeTerms({ plan, scenario }: Terms): string {
  const { roots, batch, signals, ...around } = scenario;
  const lines = roots.flatMap(({ program, rival, ...acts }) => [
    ...describeProgram(program),
    ...(rival === null ? [] : describeProgram(rival.program)),
    `callers: start ${program.path} ${terse({ ...acts, rivalAtMs: rival?.atMs ?? null })}`,
  ]);
  if (batch !== null) {
    const { items, ...acts } = batch;
    lines.push(...items.flatMap(({ program }) => describeProgram(program)));
    lines.push(`callers: start ${items.map(({ key }) => key).join(", ")} at once ${terse(acts)}`);
  }
  for (const [path, sent] of signals)
    for (const [name, values] of sent) lines.push(`callers: signal ${path} on ${name}: ${values.join(", ")}`);
  return [...lines, `callers: ${terse(around)}`, `world: ${terse(plan)}`].join("\n");
}

interface SomeProgram {
  readonly path: string;
  readonly ops: readonly object[];
  readonly next: SomeProgram | null;
}

function describeProgram({ path, ops, next, ...options }: SomeProgram): readonly string[] {
  return [
    `${path} = workflow(${terse(options)}, async (ctx) => {`,
    ...indent(ops.flatMap(describeOp)),
    ...(next === null ? [] : indent([`ctx.continueAs(${next.path})`])),
    "})",
    ...(next === null ? [] : describeProgram(next)),
  ];
}

/** Of any kind: what it does is in its members, and what it does inside in those that are lists or programs. */
function describeOp(op: object): readonly string[] {
  const { kind, ...members } = op as Readonly<Record<string, unknown>>;
  const plain: [string, unknown][] = [];
  const inside: string[] = [];
  for (const [key, member] of Object.entries(members)) {
    if (isProgram(member)) inside.push(...describeProgram(member));
    else if (Array.isArray(member) && member.every(isOps))
      for (const ops of member) inside.push("[", ...indent(ops.flatMap(describeOp)), "]");
    else if (isOps(member)) inside.push(...member.flatMap(describeOp));
    else plain.push([key, member]);
  }
  const opening = `await ctx.${String(kind)}(${terse(Object.fromEntries(plain))}`;
  return inside.length === 0 ? [`${opening})`] : [`${opening},`, ...indent(inside), ")"];
}

function isProgram(value: unknown): value is SomeProgram {
  return typeof value === "object" && value !== null && "ops" in value;
}

function isOps(value: unknown): value is readonly object[] {
  return (
    Array.isArray(value) &&
    value.every((op: unknown) => typeof op === "object" && op !== null && "kind" in op)
  );
}

function indent(lines: readonly string[]): readonly string[] {
  return lines.map((line) => `  ${line}`);
}

function terse(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(terse).join(", ")}]`;
  if (typeof value === "number") return String(Math.round(value * 1_000) / 1_000);
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = (Object.entries(value) as [string, unknown][])
    .map(([key, member]) => [key, terse(member)] as const)
    .filter(([, text]) => !["null", "0", "false", "[]", "{}"].includes(text));
  return members.length === 0 ? "{}" : `{ ${members.map(([key, text]) => `${key}: ${text}`).join(", ")} }`;
}
