import { spawn, type ChildProcess } from "node:child_process";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { createPawl, ref } from "pawl";
import { test } from "pawl-test-support";
import { describe, expect } from "vitest";
import type { sendReport } from "./workers/reports.ts";

interface Program {
  readonly process: ChildProcess;
  output(): string;
  /** Resolves with the exit code. */
  readonly ended: Promise<number | null>;
}

function run(file: string, databaseUrl: string): Program {
  const flags = ["--conditions=@pawl/source", "--import", "tsx"];
  const env = { ...process.env, DATABASE_URL: databaseUrl, PORT: "0" };
  const child = spawn(process.execPath, [...flags, join(import.meta.dirname, file)], { env });
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const ended = new Promise<number | null>((resolve) => child.on("exit", resolve));
  return { process: child, output: () => text, ended };
}

const report = ref<typeof sendReport>("send-report", 1);

describe("the programs that the guide to workers shows", () => {
  test("one runs until it is idle, and ends", async ({ database }) => {
    const program = run("workers/until-idle.ts", database.url);
    expect({ code: await program.ended, output: program.output() }).toMatchObject({ code: 0 });
    expect(program.output()).toContain("completed 3, failed 0");
  });

  test("one counts what happens", async ({ database }) => {
    const program = run("workers/metrics.ts", database.url);
    expect({ code: await program.ended, output: program.output() }).toMatchObject({ code: 0 });
    expect(program.output()).toContain("'run.completed': 1");
    expect(program.output()).toContain("'worker.stopped': 1");
    expect(program.output()).toContain("[ 'send-report@1' ]");
  });

  test("one writes its log elsewhere", async ({ database }) => {
    const program = run("workers/logging.ts", database.url);
    expect({ code: await program.ended, output: program.output() }).toMatchObject({ code: 0 });
    expect(program.output()).toBe("true\n");
  });

  test(
    "one serves until it is told to end, and says how it is",
    { timeout: 40_000 },
    async ({ database }) => {
      const program = run("workers/serve.ts", database.url);
      await expect.poll(() => program.output(), { timeout: 20_000 }).toContain("Ready");
      const port = /port: (\d+)/.exec(program.output())?.[1];
      const response = await fetch(`http://localhost:${port}/`);
      expect(response.status).toBe(200);
      expect(await response.json()).toMatchObject({ ok: true, workers: { alive: 1 } });
      await using pawl = createPawl({ url: database.url });
      const started = await pawl.start(report, 5, { queue: "reports" });
      expect(await started.result()).toEqual({ week: 5, pages: 7 });
      program.process.kill("SIGTERM");
      expect({ code: await program.ended, output: program.output() }).toMatchObject({ code: 0 });
      expect((await pawl.workers()).filter(({ isAlive }) => isAlive)).toEqual([]);
    },
  );

  test("the second signal does not wait for what runs", { timeout: 40_000 }, async ({ database }) => {
    await using pawl = createPawl({ url: database.url });
    const program = run("workers/serve.ts", database.url);
    await expect.poll(() => program.output(), { timeout: 20_000 }).toContain("Ready");
    const started = await pawl.start(report, 1_000_000, { queue: "reports" });
    await expect.poll(() => started.status(), { timeout: 10_000 }).toBe("running");
    program.process.kill("SIGTERM");
    await pause(500);
    expect(program.process.exitCode).toBeNull();
    program.process.kill("SIGTERM");
    expect({ code: await program.ended, output: program.output() }).toMatchObject({ code: 0 });
    expect(await started.status()).toBe("pending");
  });
});
