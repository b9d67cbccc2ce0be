/** What happens at a crash point of a worker. */
const pointHarms = ["crash", "pause"] as const;

/**
 * What happens to a call of the store:
 * - `dropped`: never applied, answered with an error.
 * - `unanswered`: applied, answered with an error.
 * - `crash before`, `crash after`: its process dies before it is applied, or then.
 * - `pause before`, `pause after`: its process is paused for longer than a lease before it is sent, or then.
 */
const callHarms = [
  "dropped",
  "unanswered",
  "crash before",
  "crash after",
  "pause before",
  "pause after",
] as const;

export type PointHarm = (typeof pointHarms)[number];
export type CallHarm = (typeof callHarms)[number];

/** The one thing that goes wrong in a schedule. */
export interface SingleFault {
  /** A crash point, or a call of the store and the kind of process that makes it. */
  readonly place: string;
  /** Which of the times that it is passed; the first is 1. */
  readonly nth: number;
  readonly harm: PointHarm | CallHarm;
}

/** Says what goes wrong where, in place of chance, and counts the places passed. */
export class Script {
  /** How often each place was passed, in order of their first passing. */
  readonly passed = new Map<string, number>();
  readonly #fault: SingleFault | null;
  #hasLanded = false;

  constructor(fault: SingleFault | null) {
    this.#fault = fault;
  }

  get hasLanded(): boolean {
    return this.#hasLanded;
  }

  atPoint(point: string): PointHarm | null {
    return this.#pass(`point ${point}`) as PointHarm | null;
  }

  atCall(role: string, name: string): CallHarm | null {
    return this.#pass(`${role} ${name}`) as CallHarm | null;
  }

  #pass(place: string): PointHarm | CallHarm | null {
    const nth = (this.passed.get(place) ?? 0) + 1;
    this.passed.set(place, nth);
    if (this.#fault?.place !== place || this.#fault.nth !== nth) return null;
    this.#hasLanded = true;
    return this.#fault.harm;
  }
}

export function harmsAt(place: string): readonly (PointHarm | CallHarm)[] {
  return place.startsWith("point ") ? pointHarms : callHarms;
}
