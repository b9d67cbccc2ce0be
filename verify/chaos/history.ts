import type { RunId } from "../../packages/pawl/src/core/ids.ts";
import type { EndStatus } from "../../packages/pawl/src/core/run-status.ts";
import type { StoreSnapshot } from "../../packages/pawl/src/store/snapshot.ts";
import { indexSnapshot, type FinalState } from "../hist/check-facts.ts";
import type { Entry, RecordedFact, StoreEntry, StoreOperation } from "../hist/record.ts";
import type { AuditLine } from "./audit.ts";
import type { LedgerLine } from "./side-car.ts";

/** An entry, and when it took its place among the others: a heartbeat counts from before it is committed. */
export interface Placed<Observed extends Entry = Entry> {
  readonly order: number;
  readonly entry: Observed;
}

/** Who holds a run under an epoch. */
interface Holder {
  readonly worker: string;
  readonly epoch: number;
}

/** Transitions that a caller's message comes by; others tell parents and children. */
const tellers = new Set([
  "tell_runs",
  "tell_in_transaction",
  "signal_or_start",
  "signal_or_start_in_transaction",
]);
/** Transitions that only the holder of a run makes. */
const holders = new Set([
  "record_events",
  "record_step",
  "park_runs",
  "end_runs",
  "complete_run",
  "record_in_transaction",
]);

/**
 * What the store did, told as the simulation's observers tell it: from the changes that the triggers saw, and what the final
 * snapshot says of them.
 */
export function storeEntries(
  lines: readonly AuditLine[],
  snapshot: StoreSnapshot,
): readonly Placed<StoreEntry>[] {
  return new Teller(lines, indexSnapshot(snapshot)).tell();
}

class Teller {
  readonly #lines: readonly AuditLine[];
  readonly #final: FinalState;
  readonly #entries: Placed<StoreEntry>[] = [];
  /** Lines of one transaction about one run. */
  readonly #groups = new Map<string, AuditLine[]>();
  readonly #told = new Set<string>();
  #calls = 0;

  constructor(lines: readonly AuditLine[], final: FinalState) {
    this.#lines = lines;
    this.#final = final;
    for (const line of lines) {
      if (line.run === null) continue;
      const key = groupOf(line);
      const group = this.#groups.get(key);
      if (group === undefined) this.#groups.set(key, [line]);
      else group.push(line);
    }
  }

  tell(): readonly Placed<StoreEntry>[] {
    for (const line of this.#lines) this.#tellLine(line);
    return this.#entries;
  }

  #add(line: AuditLine, process: string, operation: StoreOperation, at = line.at): void {
    const entry: StoreEntry = { by: "store", type: "ok", at, process, ...operation };
    this.#entries.push({ order: line.at, entry });
  }

  #tellLine(line: AuditLine): void {
    const { what, op, run, worker } = line;
    const detail = line.detail ?? {};
    switch (what) {
      case "created":
        return this.#tellCreated(line);
      case "claimed":
        if (run !== null && worker !== null)
          this.#add(line, worker, {
            op: "claim",
            run,
            epoch: line.epoch ?? 0,
            failures: Number(detail["failures"]),
          });
        return;
      case "registered":
      case "heard": {
        const heardAt = Number(detail["heardAt"]);
        const leaseMs = Number(detail["leaseMs"]);
        if (worker === null) return;
        if (what === "registered") return this.#add(line, worker, { op: "register", leaseMs }, heardAt);
        const held = { held: [], claimsKnownTo: null, returned: 0 };
        return this.#add(line, worker, { op: "heartbeat", leaseMs, isAlive: true, ...held }, heardAt);
      }
      case "retired":
        if (op === "retire_worker") return this.#add(line, op, { op: "retire", worker: worker ?? "" });
        return this.#add(line, op, { op: "sweep", recovered: 0, rescued: 0, retired: worker });
      case "told":
        if (run !== null && tellers.has(op))
          this.#add(line, op, {
            op: "tell",
            run,
            message: String(detail["id"]),
            topic: String(detail["topic"]),
            key: (detail["key"] ?? null) as string | null,
            answer: "accepted",
          });
        return;
      case "revived":
        if (run !== null) this.#add(line, op, { op: "redrive", answers: [[run, "redriven"]] });
        return;
      case "event":
      case "left":
      case "ended":
        return this.#tellGroup(line);
      case "spoiled":
        return;
      default:
        what satisfies never;
    }
  }

  #tellCreated(line: AuditLine): void {
    const { run, op } = line;
    const {
      key = null,
      parent = null,
      first = null,
      startAt = null,
      expiresAt = null,
      deadlineAt = null,
    } = (line.detail ?? {}) as {
      readonly key?: string | null;
      readonly parent?: RunId | null;
      readonly first?: RunId | null;
      readonly startAt?: number | null;
      readonly expiresAt?: number | null;
      readonly deadlineAt?: number | null;
    };
    // One that goes on from another is told of with that one's end.
    if (run === null || first !== null) return;
    const times = { startAt, expiresAt, deadlineAt };
    const answered = { wanted: run, call: this.#calls++, mustBeNew: false, answer: "created" } as const;
    this.#add(line, op, { op: "create", run, key, parent, ...times, ...answered });
  }

  /** All that one transaction did to a run is told once, when its last line has come: then it is all there. */
  #tellGroup(line: AuditLine): void {
    const { run, op } = line;
    const key = groupOf(line);
    if (run === null || this.#told.has(key)) return;
    this.#told.add(key);
    const group = this.#groups.get(key) ?? [];
    const left = group.find(({ what }) => what === "left");
    const ended = group.find(({ what }) => what === "ended");
    const events = group.filter(({ what }) => what === "event");
    const holder = holderOf(left ?? events.find(({ worker }) => worker !== null));
    const facts = events.map(({ detail }) => this.#factOf(run, Number(detail?.["seq"])));
    if (op === "terminate_run") {
      if (ended !== undefined)
        this.#add(line, op, { op: "terminate", run, wasHeld: left !== undefined, answer: "terminated" });
      return;
    }
    if (!holders.has(op)) {
      // A sweep takes what a dead worker held; everybody else gives it back.
      if (left?.worker != null && op !== "sweep")
        this.#add(line, left.worker, { op: "release", run, epoch: left.epoch ?? 0 });
      return;
    }
    // An end also ends children that nobody has begun, and parks what goes on from it if that is to pause.
    const isBorn = group.some(({ what }) => what === "created");
    if (holder === null && (isBorn || ended?.detail?.["status"] === "cancelled")) return;
    const { worker, epoch } = holder ?? { worker: "nobody", epoch: -1 };
    if (ended !== undefined) {
      const final = this.#final.runs.get(run);
      const { status, next = null } = ended.detail as {
        readonly status: EndStatus;
        readonly next?: RunId | null;
      };
      // Of a past life nothing but its history is left.
      const isLast = facts.at(-1)?.seq === this.#final.events.get(run)?.length;
      const result = isLast
        ? JSON.stringify((final?.error ?? final?.output)?.value ?? null)
        : (facts.at(-1)?.data ?? "null");
      this.#add(line, worker, { op: "end", run, epoch, facts, status, result, next });
    } else if (op === "park_runs") {
      const outcome = left === undefined ? "told" : "parked";
      this.#add(line, worker, { op: "park", run, epoch, facts, outcome });
    } else this.#add(line, worker, { op: "record", run, epoch, facts });
  }

  #factOf(run: RunId, seq: number): RecordedFact {
    const event = this.#final.events.get(run)?.[seq - 1];
    const data = event?.data === null || event === undefined ? null : JSON.stringify(event.data.value);
    return {
      seq,
      kind: event?.kind ?? "blocked",
      name: event?.name ?? null,
      data,
      takes: null,
      dueAt: event?.dueAt ?? null,
    };
  }
}

function groupOf({ tx, run }: AuditLine): string {
  return `${tx} ${run}`;
}

function holderOf(line: AuditLine | undefined): Holder | null {
  return line === undefined || line.worker === null || line.epoch === null
    ? null
    : { worker: line.worker, epoch: line.epoch };
}

/** When each process claimed each run, and under which epoch. */
export class Claims {
  readonly #claims = new Map<
    string,
    { readonly at: number; readonly epoch: number; readonly worker: string }[]
  >();
  readonly pidOf = new Map<string, number>();

  constructor(lines: readonly AuditLine[]) {
    for (const { what, worker, run, at, epoch, detail } of lines) {
      if (worker === null) continue;
      if (what === "registered") this.pidOf.set(worker, Number(detail?.["pid"]));
      if (what !== "claimed") continue;
      const key = `${run} ${this.pidOf.get(worker)}`;
      const claims = this.#claims.get(key) ?? [];
      claims.push({ at, epoch: epoch ?? 0, worker });
      this.#claims.set(key, claims);
    }
  }

  /** Runs that these processes have claimed, each claim counted. */
  countOf(pids: ReadonlySet<number>): number {
    let sum = 0;
    for (const [key, claims] of this.#claims) if (pids.has(Number(key.split(" ")[1]))) sum += claims.length;
    return sum;
  }

  /** The claim under which this process worked on the run at this time. */
  at(run: RunId, pid: number, at: number): { readonly epoch: number; readonly worker: string } | null {
    return this.#claims.get(`${run} ${pid}`)?.findLast((claim) => claim.at <= at) ?? null;
  }
}

/** What the ledger says, with epochs. */
export function ledgerEntries(
  lines: readonly LedgerLine[],
  claims: Claims,
  toStoreTime: (at: number) => number,
): readonly Entry[] {
  return lines.map((line): Entry => {
    const at = toStoreTime(line.at);
    const run = line.kind === "call" ? line.note.run : line.run;
    const { epoch, worker: process } = claims.at(run, line.pid, at) ?? {
      epoch: -1,
      worker: String(line.pid),
    };
    const who = { at, process, run, epoch };
    switch (line.kind) {
      case "asked":
        return { by: "ask", ...who, step: line.step, waitMs: line.waitMs };
      case "patched":
        return { by: "patch", ...who, id: line.id, isNew: line.isNew };
      case "delivered": {
        const { step, index, type, value, now, random } = line;
        return { by: "delivery", ...who, step, index, type, value, now, random };
      }
      case "call": {
        const { type, token, note } = line;
        const { step, key, tries, attempt, isUndoable, transaction, inDoubt, result } = note;
        if (note.by === "undo")
          return { by: "undo", ...who, type, step, key, undoAttempt: tries, inDoubt, result };
        const call = {
          step,
          attempt,
          token,
          key,
          stepAttempt: tries,
          isUndoable,
          isTransactional: transaction !== null,
        };
        return { by: "step", ...who, type, ...call };
      }
      default:
        return line satisfies never;
    }
  });
}
