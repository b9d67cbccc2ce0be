import { createClient, type Client } from "../../src/client/client.ts";
import { silentLog } from "../../src/core/log.ts";
import { createSeededRandom } from "../../src/core/seeded-random.ts";
import { createStoreClock } from "../../src/store/store-clock.ts";
import type { Engine } from "./engine.ts";

/** A caller of this engine's store. */
export function clientOf(engine: Engine): Client {
  const { store, clock } = engine;
  return createClient({
    store,
    clock,
    storeClock: createStoreClock(clock, store),
    ids: { next: () => engine.nextId() },
    random: createSeededRandom("caller"),
    timers: { after: () => () => {} },
    log: silentLog,
  });
}
