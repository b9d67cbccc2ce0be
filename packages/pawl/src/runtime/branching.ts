import { PawlError } from "../core/error.ts";
import { assertName } from "../core/name.ts";
import { checkInteger, checkOptions, listFault } from "../core/options.ts";
import type { Context, MapOptions, Racer } from "./context.ts";
import { createRace } from "./race.ts";
import type { Branch } from "./request.ts";
import type { Scope } from "./scope.ts";

/** The parts of a context that give parts of the code contexts of their own. */
type Branching = Pick<Context, "scope" | "map" | "race">;

export interface BranchingParts {
  /** Puts the request with this promise into a branch; false where that cannot be. */
  adopt(promise: Promise<unknown>, branch: Branch): boolean;
  /** The branch has lost. */
  withdraw(branch: Branch): void;
}

const usualConcurrency = 100;

export function createBranching(
  scope: Scope,
  parts: BranchingParts,
  contextOf: (scope: Scope) => Context,
): Branching {
  const enter = (racer: Racer, name: string, races: Scope, branch: Branch): Promise<unknown> => {
    if (typeof racer === "function") return callWith(racer, contextOf(races.inner(name, branch)));
    if (racer instanceof Promise && parts.adopt(racer, branch)) return racer;
    throw invalid(
      `The branch "${name}" of a race must be what a request of this context returned, or a function: (ctx) => …`,
    );
  };

  const mapOver = async <Item, Result>(
    items: readonly Item[],
    concurrency: number,
    call: (item: Item, index: number) => Promise<Result>,
  ): Promise<Result[]> => {
    const results: Result[] = [];
    let next = 0;
    let hasFailed = false;
    const work = async (): Promise<void> => {
      while (next < items.length && !hasFailed) {
        const index = next++;
        try {
          results[index] = await call(items[index] as Item, index);
        } catch (error) {
          hasFailed = true;
          throw error;
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, work));
    return results;
  };

  return {
    scope: quiet(async (name, call) => {
      assertName("scope", name);
      assertFunction(call, `The scope "${name}"`);
      return call(contextOf(scope.inner(name)));
    }),
    map: quiet(async (name, items, call, options: MapOptions = {}) => {
      assertName("map", name);
      const fault = listFault(items);
      if (fault !== null) throw invalid(`The map "${name}" needs an array of items: it ${fault}.`);
      assertFunction(call, `The map "${name}"`);
      const checked = checkOptions("map", options, { concurrency: checkInteger(1, 2 ** 31 - 1) });
      const { concurrency = usualConcurrency } = checked;
      const itemScopes = scope.inner(name);
      return mapOver([...items], concurrency, async (item, index) =>
        call(item, contextOf(itemScopes.inner(String(index))), index),
      );
    }),
    race: quiet(async (racers: Readonly<Record<string, Racer>>) => {
      const names = namesOf(racers);
      if (names.length === 0) throw invalid("race needs an object of branches: { paid: …, late: … }.");
      for (const name of names) assertName("branch", name);
      const { branches } = createRace(names.length, scope.branch);
      const races = scope.inner("race");
      return new Promise<{ readonly winner: string; readonly value: unknown }>((resolve, reject) => {
        let isDecided = false;
        const win = (winner: Branch): boolean => {
          if (isDecided) return false;
          isDecided = true;
          for (const branch of branches) if (branch !== winner) parts.withdraw(branch);
          return true;
        };
        const begin = (branch: Branch, name: string): void =>
          void enter(racers[name] as Racer, name, races, branch).then(
            (value) => win(branch) && resolve({ winner: name, value }),
            (error: unknown) => win(branch) && reject(error as Error),
          );
        try {
          for (const [place, branch] of branches.entries()) begin(branch, names[place] ?? "");
        } catch (error) {
          // A race that is none has no winner: what was asked for must not wait for it.
          isDecided = true;
          for (const branch of branches) parts.withdraw(branch);
          throw error;
        }
      });
    }) as unknown as Context["race"],
  };
}

async function callWith(racer: (ctx: Context) => unknown, ctx: Context): Promise<unknown> {
  return racer(ctx);
}

/** What the code has lost interest in must not end the process when it fails. */
function quiet<Args extends unknown[], Result>(
  call: (...args: Args) => Promise<Result>,
): (...args: Args) => Promise<Result> {
  return (...args) => {
    const result = call(...args);
    result.catch(() => {});
    return result;
  };
}

/** None where it is no object, or one that throws at whoever looks at it. */
function namesOf(racers: unknown): readonly string[] {
  try {
    return typeof racers === "object" && racers !== null ? Object.keys(racers) : [];
  } catch {
    return [];
  }
}

function assertFunction(call: unknown, what: string): void {
  if (typeof call !== "function") throw invalid(`${what} needs a function to call.`);
}

function invalid(message: string): PawlError {
  return new PawlError("INVALID_OPTION", message);
}
