import { createPawl, workflow, type Context, type Duration, type Workflow } from "pawl";

/** Where a machine may stand, and where it goes from there. A state with no way out is its end. */
interface State<Data> {
  /** Done once, when the machine comes here; what it returns is the machine's data from then on. */
  readonly enter?: (data: Data) => Data | Promise<Data>;
  /** The next state, by the signal that leads there. */
  readonly on?: Readonly<Record<string, string>>;
  /** Where it goes by itself, and when. */
  readonly after?: { readonly wait: Duration; readonly to: string };
}

/** A front end: a workflow whose code is a table of states. */
function machine<Data>(
  name: string,
  initial: string,
  states: Readonly<Record<string, State<Data>>>,
): Workflow<Data, Data> {
  return workflow({ name, version: 1 }, async (ctx: Context, input: Data): Promise<Data> => {
    let data = input;
    let at = initial;
    for (;;) {
      const state = states[at];
      if (state === undefined) throw new Error(`There is no state "${at}"`);
      const { enter, on = {}, after } = state;
      if (enter !== undefined) data = await ctx.step(`enter ${at}`, () => enter(data));
      await ctx.publish("state", at);
      const ways: Record<string, (branch: Context) => Promise<string>> = {};
      for (const [signal, to] of Object.entries(on))
        ways[signal] = (branch) => branch.waitForSignal(signal).then(() => to);
      if (after !== undefined) ways["time is up"] = (branch) => branch.sleep(after.wait).then(() => after.to);
      if (Object.keys(ways).length === 0) return data;
      ({ value: at } = await ctx.race(ways));
    }
  });
}

const door = machine<readonly string[]>("door", "closed", {
  closed: { on: { open: "open", lock: "locked" } },
  open: { enter: (log) => [...log, "opened"], after: { wait: "100ms", to: "closed" } },
  locked: { enter: (log) => [...log, "locked for good"] },
});

await using pawl = createPawl({ url: process.env.DATABASE_URL });
await pawl.migrate();
await pawl.worker({ workflows: [door] }).start();

const run = await pawl.start(door, []);
await run.signal("open");
await run.signal("lock"); // waits until the door has closed by itself
console.log(await run.result(), await run.published("state"));
