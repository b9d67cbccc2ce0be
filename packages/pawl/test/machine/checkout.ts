import { z } from "zod";
import { machine } from "../../src/index.ts";

const Order = z.object({ orderId: z.number() });
const CheckoutState = z.object({ hold: z.string(), charge: z.string() });
const Receipt = z.object({ carrier: z.string(), hold: z.string() });
const Shipment = z.object({ carrier: z.string() });

/** What the handlers did, in order. */
export interface Shop {
  readonly done: string[];
}

/** The example of the guide's first idea: an order from its reservation to its shipment. */
export function createCheckout(queue: string, shop: Shop, day = 86_400_000) {
  const stock = {
    reserve: async (orderId: number): Promise<string> => {
      shop.done.push(`reserve ${orderId}`);
      return `hold-${orderId}`;
    },
  };
  const releaseHold = ({ state }: { readonly state: { readonly hold: string } }): void =>
    void shop.done.push(`release ${state.hold}`);
  const chargeCard = async ({ attempt }: { readonly attempt: number }): Promise<{ charge: string }> => {
    shop.done.push(`charge ${attempt}`);
    if (attempt === 1) throw new Error("The bank is down");
    return { charge: "c-1" };
  };
  const tomorrow = (now: number): Date => new Date(now + day);

  return machine({
    name: "checkout",
    version: 1,
    start: "reserve_inventory",
    queue,
    retry: { initial: 0 },
    input: Order,
    state: CheckoutState,
    output: Receipt,
    signals: { shipment_created: Shipment },
    steps: {
      reserve_inventory: {
        run: async ({ input, next }) => next("charge_card", { hold: await stock.reserve(input.orderId) }),
        undo: releaseHold,
      },
      charge_card: {
        run: chargeCard,
        next: "wait_for_shipment",
        retry: { attempts: 5, initial: 0 },
        timeout: "30s",
      }, // returns a state patch
      wait_for_shipment: {
        run: ({ waitForSignal }) =>
          waitForSignal("shipment_created", { then: "notify", timeout: "7d", onTimeout: "nag" }),
      },
      nag: { run: ({ sleepUntil, now }) => sleepUntil(tomorrow(now), "wait_for_shipment") },
      notify: {
        run: async ({ wake, state, complete }) =>
          complete({ carrier: wake.signal.carrier, hold: state.hold }),
      },
    },
  });
}
