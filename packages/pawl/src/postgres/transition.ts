import { PawlError } from "../core/error.ts";

/** One statement of ours, named: the name is the prepared statement's and what shows in logs. */
export interface Transition {
  readonly name: string;
  readonly text: string;
}

const known: Transition[] = [];

/** Declares a statement. Tests prepare every declared one against a migrated schema. */
export function transition(name: string, text: string): Transition {
  const declared = { name, text };
  known.push(declared);
  return declared;
}

export function declaredTransitions(): readonly Transition[] {
  return known;
}

/** A row that every call must answer is missing. */
export function unanswered({ name }: Transition): PawlError {
  return new PawlError("INTERNAL", `${name} answered nothing. Please report this.`);
}
