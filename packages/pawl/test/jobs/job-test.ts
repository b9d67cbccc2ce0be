import { randomBytes } from "node:crypto";
import { test as base } from "pawl-test-support";
import { expect } from "vitest";
import { createPawl, type Pawl, type PawlOptions, type Worker, type WorkerOptions } from "../../src/index.ts";

/** Where runs live. */
export const places = ["memory", "postgres"] as const;
export type Place = (typeof places)[number];

type Options = Omit<PawlOptions, "url" | "pool" | "memory">;

/**
 * The tests' `test` with what jobs need:
 * - `home`: a migrated schema that the tests of a file share, each in a queue of its own;
 * - `queue`: the name of a queue that no other test uses, also good for keys and tags;
 * - `open`: makes a Pawl that is closed after the test, on `home` unless it says otherwise.
 */
export const test = base
  .extend("home", { scope: "file" }, async ({ pool }) => {
    const schema = `jobs_${randomBytes(6).toString("hex")}`;
    await using pawl = createPawl({ pool, schema });
    await pawl.migrate();
    return schema;
  })
  .extend("queue", () => `q${randomBytes(6).toString("hex")}`)
  .extend("open", async ({ pool, home }, { onCleanup }) => {
    const opened: Pawl[] = [];
    onCleanup(async () => {
      await Promise.all(opened.map((pawl) => pawl.close({ timeout: 0 })));
    });
    return (place: Place = "postgres", options: Options = {}): Pawl => {
      const where = place === "memory" ? { memory: true } : { pool, schema: home };
      const pawl = createPawl({ ...where, ...options });
      opened.push(pawl);
      return pawl;
    };
  });

/** A started worker that looks for work often. */
export async function work(pawl: Pawl, options: WorkerOptions): Promise<Worker> {
  const worker = pawl.worker({ pollInterval: 50, ...options });
  await worker.start();
  return worker;
}

/** Expects of what may take a while. */
export function eventually<Value>(ask: () => Value | Promise<Value>) {
  return expect.poll(ask, { timeout: 15_000, interval: 5 });
}

/** A door that code waits at until a test opens it. */
export function createGate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open: () => open() };
}

/** Numbers from 0. */
export function upTo(count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => index);
}
