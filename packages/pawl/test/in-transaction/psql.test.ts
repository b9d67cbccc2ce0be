import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { confirm, useShop } from "./shop.ts";

const psql = (process.env["PATH"] ?? "")
  .split(delimiter)
  .map((folder) => join(folder, "psql"))
  .find((path) => existsSync(path));

if (psql === undefined)
  console.info("psql was not found: apt-get install postgresql-client. Its tests are skipped.");

describe.skipIf(psql === undefined)("psql", () => {
  const shop = useShop();

  /** What a script prints: bare values, one a line. Stops at the first error. */
  async function run(script: string): Promise<readonly string[]> {
    const args = ["-X", "-q", "-At", "-v", "ON_ERROR_STOP=1", "-v", "VERBOSITY=verbose", "-f", "-"];
    const running = promisify(execFile)(psql ?? "psql", [...args, shop.database.url]);
    running.child.stdin?.end(script);
    return (await running).stdout.trim().split("\n");
  }

  test("starts, signals and cancels inside its own transaction", async () => {
    const [shipped, cancelled] = await run(`
      begin;
      insert into purchase (id) values (1);
      select pawl.start('deliver', key => 'purchase:1') as run \\gset
      select :'run';
      select pawl.signal(:'run', 'shipped', '{"carrier":"dhl"}', idempotency_key => 'form 12') as said \\gset
      select pawl.start('deliver') as other \\gset
      select :'other';
      select pawl.cancel(:'other', 'changed their mind') as said \\gset
      commit;`);
    const { rows } = await shop.pool.query(
      "select run_id, topic, data::jsonb, idempotency_key from pawl.inbox order by topic desc",
    );
    expect(rows).toEqual([
      { run_id: shipped, topic: "signal:shipped", data: { carrier: "dhl" }, idempotency_key: "form 12" },
      { run_id: cancelled, topic: "cancel", data: { reason: "changed their mind" }, idempotency_key: null },
    ]);
    expect(await shop.pawl.get(shipped!)).toMatchObject({ status: "pending", key: "purchase:1" });
  });

  test("takes it all back with its transaction", async () => {
    const [gone, kept] = await run(`
      begin;
      insert into purchase (id) values (2);
      select pawl.start('confirm', '2');
      rollback;
      select pawl.start('confirm', '{"id":3}');`);
    expect(await shop.pawl.get(gone!)).toBeNull();
    await shop.pawl.worker({ workflows: [confirm] }).start();
    expect(await shop.pawl.handle(kept!).result()).toEqual({ id: 3 });
    expect((await shop.pool.query("select from purchase where id = 2")).rowCount).toBe(0);
  });

  test("shows what was refused, by its own code", async () => {
    await run("select pawl.start('confirm', '1', key => 'one')");
    const conflict = run("select pawl.start('confirm', '2', key => 'one')");
    await expect(conflict).rejects.toMatchObject({
      stderr: expect.stringMatching(/PW002: The key "one" belongs to run .*DETAIL: {2}KEY_CONFLICT/s),
    });
  });
});
