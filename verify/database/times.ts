import { setTimeout as pause } from "node:timers/promises";
import { workflow } from "../../packages/pawl/src/index.ts";
import { comesTrue, within, type Scene } from "./scene.ts";

const longTimes: Scene = {
  name: "times of more than 2^31 ms are not over at once",
  invariant: "I9",
  async play(props, report) {
    const patient = workflow({ name: "patient", version: 1, retry: { attempts: 1 } }, async (ctx) => {
      await ctx.step("long", () => pause(100), { timeout: "30d", retry: { attempts: 1 } });
      return ctx.waitForSignal("word", { timeout: "40d" });
    });
    await props.pawl.worker({ workflows: [patient] }).start();
    const run = await props.pawl.start(patient);
    const isWaiting = await comesTrue(async () => (await run.status()) === "waiting");
    await pause(100);
    await run.signal("word", "at last").catch(() => {});
    const result = await within(run.result());
    if (!isWaiting || result !== "at last")
      report("I9", "a time of 30 or 40 days was over at once", { isWaiting, result });
  },
};

/** The server and this process are in a zone that is half an hour off the others. */
const instants: Scene = {
  name: "an instant is the same in every time zone",
  invariant: "I9",
  async play(props, report) {
    const later = workflow({ name: "later", version: 1 }, (ctx) => ctx.sleepUntil(until));
    const now = Date.now();
    const inHours = (hours: number): Date => new Date(now + hours * 3_600_000);
    const [at, expiresAt, deadline, until] = [inHours(1), inHours(2), inHours(3), inHours(4)];
    const delayed = await props.pawl.start(later, undefined, { at, expiresAt, deadline });
    const [stored] = await props.ask<readonly number[]>(
      `select array[extract(epoch from start_at), extract(epoch from expires_at), extract(epoch from deadline_at),
                    (select extract(epoch from due_at) from {schema}.parked where run_id = run.id)]::float8[]
         from {schema}.run where id = $1`,
      [delayed.id],
    );
    const given = [at, expiresAt, deadline, at].map((date) => date.getTime() / 1_000);
    if (JSON.stringify(stored) !== JSON.stringify(given))
      report("I9", "an instant is stored as another one", { given, stored });

    await props.pawl.worker({ workflows: [later] }).start();
    const asleep = await props.pawl.start(later);
    const dueAt = () =>
      props.ask<number>("select extract(epoch from due_at)::float8 from {schema}.parked where run_id = $1", [
        asleep.id,
      ]);
    await comesTrue(async () => (await dueAt()).length > 0);
    const due = await dueAt();
    if (due[0] !== until.getTime() / 1_000)
      report("I9", "a timer is set for another instant", { until, due });
  },
};

export const times: readonly Scene[] = [longTimes, instants];
