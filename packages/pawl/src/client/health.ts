import type { Clock } from "../core/clock.ts";
import { PawlError, type ErrorCode } from "../core/error.ts";
import { delay, type Timers } from "../core/timers.ts";
import type { StoreReport } from "../store/store-report.ts";

/** What `pawl.health()` found. Serves as the answer of a readiness check. */
export interface Health {
  /** Whether runs can be started and executed now. */
  readonly ok: boolean;
  /** How long the database took to answer; null: it did not. */
  readonly latencyMs: number | null;
  /** The schema's version, 0 where there is none; null: unknown. */
  readonly schemaVersion: number | null;
  readonly isUpToDate: boolean;
  /** Whether notifications arrive. `off`: nobody in this process waits for any, or `listen` is false. */
  readonly listening: "live" | "dead" | "off";
  /** Whether a transaction pooler was found between here and the database. */
  readonly pooled: boolean;
  /** How far the database's clock is ahead of this process's; null: unknown. */
  readonly clockOffsetMs: number | null;
  readonly workers: { readonly alive: number | null };
  /** What a person should look into, in sentences. */
  readonly warnings: readonly string[];
  /** Why it is not ok. */
  readonly error: { readonly code: ErrorCode; readonly message: string } | null;
}

interface HealthParts {
  readonly clock: Clock;
  readonly timers: Timers;
  readonly examine: () => Promise<StoreReport>;
}

/** A database that takes longer than this is as good as gone to whoever asks. */
const longestWaitMs = 5_000;
/** Ids and start times follow the database's clock; people compare its times with their logs'. */
const bearableOffsetMs = 1_000;

/** Never rejects. */
export async function checkHealth({ clock, timers, examine }: HealthParts): Promise<Health> {
  const sentAt = clock.now();
  const tooLate = new AbortController();
  try {
    const report = await Promise.race([
      examine(),
      delay(timers, longestWaitMs, tooLate.signal).then(() => {
        throw new PawlError("STORE_UNAVAILABLE", `The database gave no answer within ${longestWaitMs} ms.`);
      }),
    ]);
    return describe(report, sentAt, clock.now());
  } catch (error) {
    const code = PawlError.is(error) ? error.code : "INTERNAL";
    const message = error instanceof Error ? error.message : String(error);
    return { ...unknown, error: { code, message } };
  } finally {
    tooLate.abort();
  }
}

const unknown: Health = {
  ok: false,
  latencyMs: null,
  schemaVersion: null,
  isUpToDate: false,
  listening: "off",
  pooled: false,
  clockOffsetMs: null,
  workers: { alive: null },
  warnings: [],
  error: null,
};

function describe(report: StoreReport, sentAt: number, heardAt: number): Health {
  const { version, wantedVersion, isFit, listening, isPooled } = report;
  const clockOffsetMs = Math.round(report.now - (sentAt + heardAt) / 2);
  const difference = schemaDifference(version, wantedVersion);
  const error = isFit ? null : difference;
  const warnings = [
    ...(difference === null ? [] : [difference.message]),
    ...report.unsafeSettings.map(
      (setting) => `The server's ${setting} is off: what it has acknowledged may be lost when it crashes.`,
    ),
    ...(listening === "pooled"
      ? ["Notifications do not pass the transaction pooler: give listenUrl a direct connection."]
      : []),
    ...(listening === "dead"
      ? ["The connection for notifications is lost: work is found by polling until it is back."]
      : []),
    ...(Math.abs(clockOffsetMs) > bearableOffsetMs
      ? [
          `This machine's clock is ${Math.abs(clockOffsetMs)} ms ${clockOffsetMs > 0 ? "behind" : "ahead of"} the database's.`,
        ]
      : []),
  ];
  return {
    ok: error === null,
    latencyMs: Math.round(heardAt - sentAt),
    schemaVersion: version,
    isUpToDate: version === wantedVersion,
    listening: listening === "pooled" ? "dead" : listening,
    pooled: isPooled,
    clockOffsetMs,
    workers: { alive: report.aliveWorkers },
    warnings,
    error,
  };
}

function schemaDifference(version: number, wanted: number): Health["error"] {
  if (version === wanted) return null;
  if (version === 0)
    return { code: "SCHEMA_MISSING", message: "The schema is not there yet: run pawl.migrate()." };
  if (version < wanted) {
    const message = `The schema is at version ${version}, this library needs ${wanted}: run pawl.migrate().`;
    return { code: "SCHEMA_TOO_OLD", message };
  }
  const message = `The schema is at version ${version}, newer than this library knows (${wanted}): upgrade the library.`;
  return { code: "SCHEMA_TOO_NEW", message };
}
