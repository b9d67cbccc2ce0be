import { startPostgres } from "@pawl/embedded";
import { readdirSync, readFileSync } from "node:fs";
import pg from "pg";

/** The Postgres that all contestants run on, with durable settings: each in a new database. */
export interface Ground {
  openDatabase(): Promise<{ readonly url: string; drop(): Promise<void> }>;
  /** CPU time of all its processes so far, those that have ended included; null where that cannot be read. */
  cpuMs(): number | null;
  /** What the machine does at this moment: a fixed computation, and one durable insert after the other. */
  calibrate(): Promise<Calibration>;
  close(): Promise<void>;
}

export interface Calibration {
  readonly loopMs: number;
  readonly insertMs: number;
}

/** `settings`: beyond those of every ground. */
export async function openGround(settings: Readonly<Record<string, string>> = {}): Promise<Ground> {
  const postgres = await startPostgres({
    settings: { max_wal_size: "4GB", max_connections: "300", ...settings },
  });
  const admin = new pg.Client(postgres.url);
  admin.on("error", () => {});
  await admin.connect();
  await admin.query(
    "create table calibration (id bigint generated always as identity primary key, data text)",
  );
  const { rows } = await admin.query<{ dir: string }>("select current_setting('data_directory') as dir");
  const postmaster = Number(readFileSync(`${rows[0]?.dir}/postmaster.pid`, "utf8").split("\n")[0]);
  let databases = 0;

  return {
    async openDatabase() {
      const name = `bench_${++databases}`;
      await admin.query(`create database ${name}`);
      await admin.query("checkpoint");
      const url = new URL(postgres.url);
      url.pathname = name;
      return {
        url: url.href,
        drop: async () => void (await admin.query(`drop database ${name} with (force)`)),
      };
    },
    cpuMs: () => cpuOf(postmaster),
    async calibrate() {
      let sum = 0;
      const loopAt = performance.now();
      for (let n = 0; n < 20_000_000; n++) sum = (sum + n * 7) % 1_000_003;
      const insertAt = performance.now();
      const inserts = 100;
      for (let n = 0; n < inserts; n++)
        await admin.query("insert into calibration (data) values ($1)", [String(sum)]);
      return { loopMs: insertAt - loopAt, insertMs: (performance.now() - insertAt) / inserts };
    },
    async close() {
      await admin.end();
      await postgres.stop();
    },
  };
}

/** Of a process and its children; what has ended is counted by the parent. Linux tells it in ticks of 10 ms. */
function cpuOf(parent: number): number | null {
  try {
    let ticks = 0;
    for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
      const fields = readStat(pid);
      if (Number(pid) === parent) for (const field of [11, 12, 13, 14]) ticks += Number(fields[field]);
      else if (Number(fields[1]) === parent) for (const field of [11, 12]) ticks += Number(fields[field]);
    }
    return ticks * 10;
  } catch {
    return null;
  }
}

/** From the third field on: the second is a name that may hold anything. */
function readStat(pid: string): readonly string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  } catch {
    return [];
  }
}
