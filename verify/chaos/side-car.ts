import type { CallNote, Command, Report } from "./messages.ts";

/** What one process did, as it said. */
export type LedgerLine =
  | {
      readonly kind: "call";
      readonly pid: number;
      readonly at: number;
      readonly type: "invoke" | "ok" | "fail";
      readonly token: string;
      readonly note: CallNote;
    }
  | (Extract<Report, { kind: "asked" | "delivered" | "patched" }> & { readonly pid: number });

/** The world outside, on which steps act. It never dies, and remembers every call, whoever made it. */
export class SideCar {
  readonly lines: LedgerLine[] = [];
  readonly #calls = new Map<string, number>();
  readonly #underWay = new Map<number, number>();

  /** Calls of a process that have begun and not ended. */
  underWay(pid: number): number {
    return this.#underWay.get(pid) ?? 0;
  }

  #move(pid: number, by: 1 | -1): void {
    this.#underWay.set(pid, this.underWay(pid) + by);
  }

  /** Takes a report of this process; answers what is to be said to it, if anything is. */
  hear(pid: number, report: Report): Command | null {
    switch (report.kind) {
      case "call": {
        const { id, at, note } = report;
        const key = `${note.by} ${note.run} ${note.step}`;
        const times = (this.#calls.get(key) ?? 0) + 1;
        this.#calls.set(key, times);
        const number = this.lines.length;
        const token = `${note.step}#${note.by === "undo" ? "undo" : ""}${number}`;
        this.lines.push({ kind: "call", pid, at, type: "invoke", token, note });
        this.#move(pid, 1);
        return { kind: "noted", id, number, fails: times <= note.failures };
      }
      case "called": {
        const { at, type, token, note } = report;
        this.lines.push({ kind: "call", pid, at, type, token, note });
        this.#move(pid, -1);
        return null;
      }
      case "asked":
      case "delivered":
      case "patched":
        this.lines.push({ ...report, pid });
        return null;
      case "up":
      case "working":
      case "log":
      case "lost":
      case "trouble":
        return null;
      default:
        return report satisfies never;
    }
  }
}
