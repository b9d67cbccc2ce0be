import type { AnyStep, Definition } from "./definition.ts";

/** Where a step may lead, as far as its definition tells. */
export interface StepGraph {
  readonly name: string;
  /** The step that follows where the handler returns no outcome. */
  readonly next: string | null;
  /** The steps that the handler may choose: those of `leadsTo`, or those that it names. */
  readonly chooses: readonly string[];
  /** Whether the handler may sleep or wait before it goes on. */
  readonly mayWait: boolean;
  /** How often a run may come to it; null: without limit. */
  readonly limit: number | null;
}

/** The steps of a machine, and the ways between them. */
export interface MachineGraph {
  readonly start: string;
  readonly steps: readonly StepGraph[];
}

export function graphOf({ start, steps }: Definition): MachineGraph {
  const names = [...steps.keys()];
  const describe = ([name, step]: readonly [string, AnyStep]): StepGraph => {
    const source = Function.prototype.toString.call(step.run);
    return {
      name,
      next: step.next ?? null,
      chooses: (step.leadsTo ?? namedIn(source, names)).filter((to) => to !== step.next),
      mayWait: /\b(?:sleepUntil|waitForSignal)\b/.test(source) || isUnclear(step, source),
      limit: step.limit ?? null,
    };
  };
  return { start, steps: [...steps].map(describe) };
}

/**
 * A handler is code, and only running it would tell where it goes. But to go to a step it must name it, and mostly does so
 * itself: so the texts in its source that are names of steps are taken for its choices. Functions that it calls are not
 * looked at.
 */
function namedIn(source: string, names: readonly string[]): readonly string[] {
  const texts = source.matchAll(/"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|`([^`$\\]*)`/g);
  const found = new Set([...texts].map(([, double, single, template]) => double ?? single ?? template));
  return names.filter((name) => found.has(name));
}

/** It returns outcomes, and others make them. */
function isUnclear({ next }: AnyStep, source: string): boolean {
  return next === undefined && !/\b(?:next|complete|fail)\b/.test(source);
}

/** What looks wrong about a machine, and may be right. */
export function warningsOf(graph: MachineGraph): readonly string[] {
  return [
    ...unreachable(graph).map(
      (name) =>
        `No step leads to step "${name}", as far as can be seen: say where handlers go with "leadsTo".`,
    ),
    ...restlessCycles(graph).map((cycle) =>
      cycle.length === 1
        ? `Step "${cycle[0]}" leads to itself without a wait or a "limit".`
        : `The steps ${cycle.map((name) => `"${name}"`).join(", ")} lead to each other without a wait or a "limit".`,
    ),
  ];
}

function unreachable({ start, steps }: MachineGraph): readonly string[] {
  const reached = reachedFrom(start, waysOf(steps)).add(start);
  return steps.map(({ name }) => name).filter((name) => !reached.has(name));
}

/** Steps that a run may go round through for ever, without rest. */
function restlessCycles({ steps }: MachineGraph): readonly (readonly string[])[] {
  const restless = steps.filter(({ mayWait, limit }) => !mayWait && limit === null);
  const ways = waysOf(restless);
  const reached = new Map(restless.map(({ name }) => [name, reachedFrom(name, ways)]));
  const told = new Set<string>();
  return [...reached].flatMap(([name, from]) => {
    if (!from.has(name) || told.has(name)) return [];
    const cycle = [...reached].flatMap(([other, back]) => (from.has(other) && back.has(name) ? [other] : []));
    for (const each of cycle) told.add(each);
    return [cycle];
  });
}

type Ways = ReadonlyMap<string, readonly string[]>;

function waysOf(steps: readonly StepGraph[]): Ways {
  return new Map(
    steps.map(({ name, next, chooses }) => [name, next === null ? chooses : [next, ...chooses]]),
  );
}

/** Not the step itself, unless a way leads back to it. */
function reachedFrom(start: string, ways: Ways): Set<string> {
  const reached = new Set<string>();
  const open = [...(ways.get(start) ?? [])];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (reached.has(name) || !ways.has(name)) continue;
    reached.add(name);
    open.push(...(ways.get(name) ?? []));
  }
  return reached;
}
