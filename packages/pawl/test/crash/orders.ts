import { setTimeout as pause } from "node:timers/promises";
import { PawlError, type Pawl, type RunHandle } from "../../src/index.ts";
import type { Scene } from "./scene.ts";
import { order, type OrderOutput } from "./workflows.ts";

export interface StartedOrder {
  readonly n: number;
  readonly run: RunHandle<OrderOutput>;
}

/**
 * Starts a run and sends it the two signals it waits for: sometimes before it waits, sometimes after, some of them twice.
 * What is done once needs no key to be done once.
 */
export async function startOrder({ random }: Scene, pawl: Pawl, n: number): Promise<StartedOrder> {
  const stepMs = 20 + random.next() * 60;
  const signals = [`first ${n}`, `second ${n}`].map((word) => ({
    word,
    delayMs: random.next() < 0.7 ? random.next() * 600 : 0,
    times: random.next() < 0.3 ? 2 : 1,
  }));
  const hasKey = random.next() < 0.5;
  const run = await pawl.start(order, { n, stepMs }, hasKey ? { key: `order:${n}` } : {});
  for (const { word, delayMs, times } of signals) {
    await pause(delayMs);
    const options = times > 1 ? { idempotencyKey: word } : {};
    for (let time = 0; time < times; time++) await run.signal("go", word, options);
  }
  return { n, run };
}

export async function untilAnswered<Answer>(call: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!PawlError.is(error, "STORE_UNAVAILABLE")) throw error;
    }
  }
}
