import { createPawl, machine, NonRetryableError, PawlError, toMermaid, type UndoHandlerContext } from "pawl";
import { z } from "zod";

const Order = z.object({ orderId: z.number(), card: z.string() });
const CheckoutState = z.object({ hold: z.string(), charge: z.string() });
const Receipt = z.object({ carrier: z.string(), hold: z.string() });
const Shipment = z.object({ carrier: z.string() });
type Order = z.infer<typeof Order>;

const stock = {
  async reserve(orderId: number): Promise<string> {
    console.log(`Order ${orderId} is put aside.`);
    return `hold-${orderId}`;
  },
};

let isBankUp = false;
/** Charges once for each key, however often it is asked. */
const bank = {
  async charge(card: string, key: string): Promise<string> {
    if (card === "stolen") throw new NonRetryableError("The card is refused");
    if (!isBankUp) {
      isBankUp = true;
      throw new Error("The bank is down");
    }
    console.log(`Card ${card} is charged.`);
    return `charge-${key.slice(-11)}`;
  },
};

/** A handler or an undo may be a function of its own: it says what it needs of its argument. */
async function chargeCard({
  input,
  idempotencyKey,
}: {
  readonly input: Order;
  readonly idempotencyKey: string;
}) {
  return { charge: await bank.charge(input.card, idempotencyKey) };
}

function releaseHold({ state }: UndoHandlerContext<Order, { readonly hold: string }>): void {
  console.log(`${state.hold} is released.`);
}

const inASecond = (now: number): Date => new Date(now + 1_000);

export const checkoutV1 = machine({
  name: "checkout",
  version: 1,
  start: "reserve_inventory",
  input: Order,
  state: CheckoutState,
  output: Receipt,
  signals: { shipment_created: Shipment },
  steps: {
    reserve_inventory: {
      run: async ({ input, next }) => next("charge_card", { hold: await stock.reserve(input.orderId) }),
      undo: releaseHold,
    },
    // Returns a patch of the state: `next` says where that leads.
    charge_card: {
      run: chargeCard,
      next: "wait_for_shipment",
      retry: { attempts: 2, initial: 0 },
      timeout: "30s",
    },
    wait_for_shipment: {
      run: ({ waitForSignal }) =>
        waitForSignal("shipment_created", { then: "notify", timeout: "300ms", onTimeout: "nag" }),
    },
    nag: {
      run: ({ sleepUntil, now, wake }) => {
        console.log(`Where is the shipment? (${wake.kind})`);
        return sleepUntil(inASecond(now), "wait_for_shipment");
      },
    },
    notify: {
      run: async ({ wake, state, complete }) => complete({ carrier: wake.signal.carrier, hold: state.hold }),
    },
  },
});

await using pawl = createPawl({ url: process.env.DATABASE_URL ?? "postgres://localhost/shop" });
await pawl.migrate();
await pawl.worker({ workflows: [checkoutV1] }).start();

const run = await pawl.start(checkoutV1, { orderId: 9182, card: "4242" }, { key: "checkout:9182" });
while ((await run.published("step")) !== "nag") await new Promise((resolve) => setTimeout(resolve, 10));
console.log(await run.published());
await run.signal("shipment_created", { carrier: "dhl" }, { idempotencyKey: "webhook-77" });
console.log(await run.result());

const refused = await pawl.start(checkoutV1, { orderId: 9183, card: "stolen" });
await refused.result().catch((error: unknown) => {
  if (!PawlError.is(error, "RUN_FAILED")) throw error;
  console.log((error.cause as Error).message);
});

console.log(toMermaid(checkoutV1));
