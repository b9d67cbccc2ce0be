import { workflow, type Context, type Pawl } from "../../packages/pawl/src/index.ts";
import { faultOf } from "../../packages/pawl/test/bad-input/outcome.ts";
import { optionsOfRequests, requests } from "../../packages/pawl/test/bad-input/requests.ts";

type Ask = (ctx: Context, value: unknown) => unknown;

const asks = new Map<string, Ask>([
  ...Object.entries(requests),
  ...Object.entries(optionsOfRequests).flatMap(([method, { names, ask }]) =>
    names
      .split(" ")
      .map((name): [string, Ask] => [
        `ctx.${method}({ ${name}: … })`,
        (ctx, value) => ask(ctx, { [name]: value }),
      ]),
  ),
]);

/** Every argument and option of every method of the context. */
export const askable: readonly string[] = [...asks.keys()];

/** What the user's own function throws is the user's own. */
const ofUser =
  /^(?:step that returns|ctx\.step\(\{ publish|step\(name, …\)|transaction\(name, …\)|map\(name, items, …\)|scope\(name, …\)|race\()/;

const makers = new Map<string, () => unknown>();

/** Asks for one thing with one value, and says what became of that. */
export const asking = workflow(
  { name: "asking", version: 1, retry: { attempts: 1 } },
  async (ctx, { place, maker }: { readonly place: string; readonly maker: string }): Promise<string> => {
    const make = makers.get(maker) ?? (() => undefined);
    try {
      await asks.get(place)?.(ctx, make());
      return "accepted";
    } catch (error) {
      return ofUser.test(place) ? "refused" : faultOf(error);
    }
  },
);

/** Has a run ask for it. */
export async function ask(pawl: Pawl, place: string, make: () => unknown): Promise<string> {
  const maker = String(makers.size);
  makers.set(maker, make);
  const run = await pawl.start(asking, { place, maker });
  return run.result();
}
