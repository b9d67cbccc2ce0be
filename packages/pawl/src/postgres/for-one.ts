import { sqlState } from "../core/sql-state.ts";
import type { Database, Row } from "./database.ts";
import type { Transition } from "./transition.ts";

/** A cheaper statement for an item that is the only one of its call and has nothing out of the ordinary. */
export interface ForOne<Item, Answer> {
  readonly statement: Transition;
  isFor(item: Item): boolean;
  encode(shard: number, item: Item): readonly unknown[];
  /** Null: the statement has done nothing, and the one for many must be asked. */
  decode(item: Item, row: never): { readonly answer: Answer } | null;
}

const uniqueViolation = "23505";

/** The answer to an item that could be dealt with so; null: nothing was done. Rejects with what the driver threw. */
export async function sendOne<Item, Answer>(
  database: Database,
  forOne: ForOne<Item, Answer>,
  shard: number,
  item: Item,
): Promise<{ readonly answer: Answer } | null> {
  try {
    const [row] = await database.run<Row>(forOne.statement, forOne.encode(shard, item));
    return row === undefined ? null : forOne.decode(item, row as never);
  } catch (error) {
    // Something of it is there already, from an earlier try. The statement for many knows what to do.
    if (sqlState(error) === uniqueViolation) return null;
    throw error;
  }
}
