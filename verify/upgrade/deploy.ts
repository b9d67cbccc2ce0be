import { setTimeout as pause } from "node:timers/promises";
import { checkGround } from "../scenes/check-ground.ts";
import { Ground } from "../scenes/ground.ts";
import type { Hand } from "../scenes/hand.ts";
import type { Scene, SceneTools } from "../scenes/scene.ts";
import type { Build } from "../scenes/workflows.ts";
import { Orders } from "./orders.ts";

/** How many runs are under way; there may not be time for all of them. */
const countInFlight = ({ isLong }: SceneTools): number => (isLong ? 1_000 : 300);
const workers = 3;

/** Replaces workers one after the other; every now and then one is killed and comes back as it was. */
async function roll(
  ground: Ground,
  hands: readonly Hand[],
  build: Build,
  { rng, landed }: SceneTools,
  meanwhile: () => Promise<void>,
): Promise<readonly Hand[]> {
  const next: Hand[] = [];
  for (const [index, hand] of hands.entries()) {
    const hiring = ground.hire({ build });
    await meanwhile();
    const successor = await hiring;
    const going = meanwhile();
    if (index === 1 || rng.chance(0.5)) {
      // Both builds are at work.
      const victim = rng.chance(0.5) ? hand : successor;
      for (let looks = 0; looks < 50 && (await heldBy(ground, victim)) === 0; looks++);
      await victim.kill();
      // What it holds now that it is dead was in its hands when it died.
      if ((await heldBy(ground, victim)) > 0) landed("worker killed with runs in its hands, in a deploy");
      landed("worker killed in the middle of a deploy");
      await going;
      if (victim === successor) {
        next.push(await ground.hire({ build }));
        await hand.stop();
        continue;
      }
    } else {
      await going;
      await hand.stop();
      landed("worker stopped in the middle of a deploy");
    }
    next.push(successor);
  }
  return next;
}

function heldBy(ground: Ground, { pid }: Hand): Promise<number> {
  return ground.value(
    "select count(*)::int from pawl.live_runs l join pawl.worker w on w.id = l.worker_id where w.pid = $1",
    [pid],
  );
}

async function hireAll(ground: Ground, build: Build): Promise<readonly Hand[]> {
  return Promise.all(Array.from({ length: workers }, () => ground.hire({ build })));
}

/** The first release with its runs under way: half of them are past the place that the next one changes. */
async function begin(ground: Ground, orders: Orders, inFlight: number): Promise<readonly Hand[]> {
  const hands = await hireAll(ground, "first");
  await orders.start(inFlight);
  await ground.until("all wait", async () => (await orders.countDone("reserve")) === inFlight);
  await orders.tell(orders.runs.slice(0, inFlight / 2));
  await ground.until("half are past it", async () => (await orders.countDone("charge")) === inFlight / 2);
  return hands;
}

/** From the first release to one with a patch, and back again: nobody changes sides, nothing is lost or done twice. */
export const patchedDeploy: Scene = {
  name: "patched-deploy",
  faults: [
    "run on the new side blocked at an old worker, and went on",
    "worker killed in the middle of a deploy",
  ],
  async act(tools) {
    const { rng, landed, figure, report } = tools;
    const inFlight = countInFlight(tools);
    await using ground = await Ground.open();
    const orders = new Orders(ground);
    const hands = await begin(ground, orders, inFlight);
    const oldSide = orders.runs.slice(0, inFlight / 2);
    const someMore = async (): Promise<void> => {
      await orders.start(20);
      await orders.tell(orders.open.filter(() => rng.chance(0.15)));
    };
    const patched = await roll(ground, hands, "patched", tools, someMore);

    // All that have come to the place by now keep their side on the way back.
    const isNew = await ground.value("select count(*)::int from pawl.event where kind = 'patched'");
    const first = await roll(ground, patched, "first", tools, someMore);
    await orders.tellAll();
    await ground.until(
      "what is on the old side has ended, and the rest is blocked",
      async () =>
        (await ground.countRuns("status not in ('completed', 'blocked')")) === 0 &&
        (await orders.countBlocked()) > 0,
    );
    const blocked = await orders.countBlocked();
    await checkBlocked(ground, report);
    await Promise.all(first.map((hand) => hand.stop()));
    const last = await hireAll(ground, "patched");
    const drainMs = await ground.drain();
    landed("run on the new side blocked at an old worker, and went on", blocked);
    await orders.check(report, oldSide);
    await checkGround(ground, report);
    await Promise.all(last.map((hand) => hand.stop()));
    figure(
      `${orders.runs.length} runs, ${isNew} on the new side when it was rolled back, ${blocked} blocked until it returned, then done in ${drainMs} ms`,
    );
  },
};

/** What does not fit is blocked, says why, and has done nothing. */
async function checkBlocked(ground: Ground, report: SceneTools["report"]): Promise<void> {
  const { rows } = await ground.pool.query<{ run_id: string; message: string }>(
    `select distinct on (e.run_id) e.run_id, e.data ->> 'message' as message
       from pawl.event e join pawl.runs r on r.id = e.run_id
      where r.status = 'blocked' and e.kind = 'blocked' order by e.run_id, e.seq desc`,
  );
  const isVague = rows.filter(({ message }) => !message.includes("Nothing was executed"));
  if (isVague.length > 0) report("I14", "a blocked run does not say what differs", ...isVague.slice(0, 3));
}

/** The next release without a patch: every run under way is blocked, no effect of it is seen, and the first one ends them all. */
export const unpatchedDeploy: Scene = {
  name: "unpatched-deploy",
  faults: ["run blocked by code that does not fit"],
  async act(tools) {
    const { landed, figure, report } = tools;
    const inFlight = countInFlight(tools);
    await using ground = await Ground.open();
    const orders = new Orders(ground);
    const hands = await begin(ground, orders, inFlight);
    await Promise.all(hands.map((hand) => hand.stop()));

    const wrong = await hireAll(ground, "unpatched");
    await orders.tellAll();
    const blockMs = await ground.until(
      "all are blocked",
      async () => (await orders.countBlocked()) === inFlight,
    );
    landed("run blocked by code that does not fit", await orders.countBlocked());
    await checkBlocked(ground, report);
    const effects = await ground.value(
      "select count(*)::int from public.ledger where step in ('check', 'ship')",
    );
    const purchases = await ground.value("select count(*)::int from public.purchase");
    if (effects !== 0 || purchases !== inFlight / 2)
      report("I14", "code that does not fit has done something", { effects, purchases });
    await pause(500);
    await Promise.all(wrong.map((hand) => hand.stop()));

    await hireAll(ground, "first");
    const drainMs = await ground.drain();
    await orders.check(report, orders.runs);
    await checkGround(ground, report);
    figure(`${inFlight} runs blocked in ${blockMs} ms, done ${drainMs} ms after the fitting code returned`);
  },
};
