import { setTimeout as pause } from "node:timers/promises";
import { workflow } from "../../packages/pawl/src/index.ts";
import { WireProxy } from "../chaos/wire-proxy.ts";
import { comesTrue, within, type Props, type Scene } from "./scene.ts";

const once = { attempts: 1 } as const;

/** Keeps the run's lease locked; answers what lets go of it. */
async function lockLease({ pool, schema }: Props, runId: string): Promise<() => Promise<void>> {
  const client = await pool.connect();
  await client.query("begin");
  await client.query(`select 1 from ${schema}.lease where run_id = $1 for update`, [runId]);
  return async () => {
    await client.query("rollback");
    client.release();
  };
}

/** COMMIT answers ROLLBACK there, without an error. */
const failsBeforeCommit: Scene = {
  name: "a transaction that fails after its record is not taken for committed",
  invariant: "I2",
  async play(props, report) {
    const careless = workflow({ name: "careless", version: 1, retry: once }, async (ctx) => {
      await ctx.transaction(
        "write",
        async (tx) => {
          await tx.query(`insert into ${props.ledger} (run_id, note) values ($1, 'written')`, [ctx.run.id]);
          // The record waits meanwhile, and behind it comes what fails.
          const letGo = await lockLease(props, ctx.run.id);
          setTimeout(() => void tx.query("select 1 / 0").catch(() => {}), 50);
          setTimeout(() => void letGo(), 200);
        },
        { retry: once },
      );
    });
    await props.pawl.worker({ workflows: [careless] }).start();
    const run = await props.pawl.start(careless);
    await within(run.result());
    const [notes, facts, status] = await Promise.all([
      props.notesOf(run.id),
      props.factsOf(run.id),
      run.status(),
    ]);
    const recorded = facts.filter((fact) => fact === "step_completed write").length;
    const isRight = notes.length === recorded && recorded === (status === "completed" ? 1 : 0);
    if (!isRight)
      report("I2", "a transaction was rolled back, and counts as committed", { status, notes, facts });
  },
};

const commitIsLost: Scene = {
  name: "a COMMIT whose answer is lost is carried out once",
  invariant: "I2",
  async play(props, report) {
    const proxy = props.own(await WireProxy.listen(props.url));
    const pawl = props.connect({ url: proxy.url });
    const write = workflow({ name: "write", version: 1 }, async (ctx) => {
      await ctx.transaction("write", async (tx) => {
        await tx.query(`insert into ${props.ledger} (run_id, note) values ($1, 'written')`, [ctx.run.id]);
      });
      await ctx.step("after", () => {});
    });
    await pawl.worker({ workflows: [write] }).start();
    const lost = proxy.inject({ kind: "lose", statement: "commit" });
    const run = await props.pawl.start(write);
    await within(lost);
    const result = await within(run.result());
    const [notes, facts] = await Promise.all([props.notesOf(run.id), props.factsOf(run.id)]);
    if (notes.length !== 1 || facts.filter((fact) => fact === "step_completed write").length !== 1)
      report("I2", "a transaction whose answer was lost took effect other than once", { notes, facts });
    if (result !== undefined) report("I17", "a run whose COMMIT was not answered did not complete", result);
  },
};

const zombieCommits: Scene = {
  name: "a transaction does not commit once another worker has the run",
  invariant: "I2",
  async play(props, report) {
    const proxy = props.own(await WireProxy.listen(props.url));
    const [zombie, peer] = [props.connect({ url: proxy.url }), props.connect()];
    let calls = 0;
    let goOn = (): void => {};
    const isOver = new Promise<void>((resolve) => (goOn = resolve));
    const write = workflow({ name: "write", version: 1 }, async (ctx) => {
      await ctx.transaction("write", async (tx) => {
        const call = ++calls;
        const values = [ctx.run.id, `call ${call}`];
        await tx.query(`insert into ${props.ledger} (run_id, note) values ($1, $2)`, values);
        if (call === 2) await isOver;
      });
    });
    await zombie.worker({ workflows: [write] }).start();
    const delayed = proxy.inject({ kind: "delay", statement: "record_in_transaction" });
    const run = await props.pawl.start(write);
    const late = await delayed;
    // As its successor does when a worker has expired.
    await props.ask(
      "select {schema}.retire_worker_v1(0::smallint, worker_id) from {schema}.lease where run_id = $1",
      [run.id],
    );
    await peer.worker({ workflows: [write] }).start();
    if (!(await comesTrue(() => calls === 2))) report("I17", "nobody has taken the run over");
    late.letGo();
    await pause(300);
    const early = await props.notesOf(run.id);
    if (early.length > 0)
      report("I5", "a transaction of a former holder has committed while another held the run", { early });
    goOn();
    await within(run.result());
    const notes = await props.notesOf(run.id);
    if (notes.length !== 1) report("I2", "a transaction took effect other than once", { notes });
  },
};

export const commits: readonly Scene[] = [failsBeforeCommit, commitIsLost, zombieCommits];
