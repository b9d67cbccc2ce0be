import { fork } from "node:child_process";
import { once } from "node:events";
import { createPawl, PawlError, workflow } from "pawl";
import pg from "pg";

/** The second process: it is killed after its effects, and before Pawl hears of them. */
const isDoomed = process.argv[2] === "doomed";
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });

/** Stands for a bank elsewhere: it takes money whenever it is told to, but once for each key. */
const bank = {
  async charge(customer: string, key?: string): Promise<string> {
    await pool.query("insert into bank values ($1, $2) on conflict do nothing", [customer, key]);
    return "paid";
  },
  async refund(key: string): Promise<void> {
    await pool.query("delete from bank where key = $1", [key]);
  },
};

let effects = 0;
/** Kills the doomed process once all five runs have done something that nobody has recorded. */
async function die(): Promise<void> {
  if (!isDoomed) return;
  if (++effects === 5) process.kill(process.pid, "SIGKILL");
  await new Promise(() => {});
}

async function charge(customer: string, key?: string): Promise<string> {
  const receipt = await bank.charge(customer, key);
  await die();
  return receipt;
}

const options = { version: 1, retry: { attempts: 1 } } as const;

const careless = workflow({ name: "careless", ...options }, (ctx) =>
  ctx.step("charge", () => charge("careless")),
);

/** Whoever is called knows what it has done under this key. */
const keyed = workflow({ name: "keyed", ...options }, (ctx) =>
  ctx.step("charge", ({ idempotencyKey }) => charge("keyed", idempotencyKey)),
);

/** Never called twice. Whether it has happened, somebody must find out. */
const asking = workflow({ name: "asking", ...options }, async (ctx) => {
  try {
    return await ctx.step("charge", () => charge("asking"), { onCrash: "fail" });
  } catch (error) {
    if (!PawlError.is(error, "STEP_CRASHED")) throw error;
    return "has it paid?";
  }
});

/** The run fails, and takes back what may have happened. */
const undone = workflow({ name: "undone", ...options }, (ctx) =>
  ctx.step("charge", ({ idempotencyKey }) => charge("undone", idempotencyKey), {
    onCrash: "fail",
    // With `inDoubt` there is no receipt, and there may have been no charge: the bank knows by the key.
    undo: (_receipt, { idempotencyKey }) => bank.refund(idempotencyKey),
  }),
);

/** What is written and the step's record commit together. */
const transaction = workflow({ name: "transaction", ...options }, (ctx) =>
  ctx.transaction("charge", async (tx) => {
    await tx.query("insert into bank values ('transaction')");
    await die();
    return "paid";
  }),
);

const workflows = [careless, keyed, asking, undone, transaction];
/** How long until a worker that is not heard of counts as dead: 15 s, unless somebody is watching. */
const lease = "3s";
await using pawl = createPawl({ url: process.env.DATABASE_URL });

if (isDoomed) {
  await pawl.worker({ workflows, lease }).start();
  await new Promise(() => {});
}

await pawl.migrate();
await pool.query("create table bank (customer text, key text unique)");
const runs = await Promise.all(workflows.map((each) => pawl.start(each)));

await once(fork(import.meta.filename, ["doomed"]), "exit");
await pawl.worker({ workflows, lease }).start();

for (const [index, { name }] of workflows.entries()) {
  const end = await runs[index]?.result().catch((error: unknown) => (error as PawlError).code);
  const { rowCount } = await pool.query("select from bank where customer = $1", [name]);
  console.log(`${name}: ${end}, charged ${rowCount} times`);
}
await pool.end();
