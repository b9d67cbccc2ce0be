import { NonRetryableError, workflow } from "pawl";
import { z } from "zod";

const hotel = { book: async (city: string, key: string) => ({ booking: `hotel-${city}`, key }) };
const airline = { prices: async (city: string) => [{ city, price: 120 }] };
const desk = { ask: async (text: string) => console.log(text) };

/** A child: a run of its own, with its own retries. */
export const bookFlight = workflow(
  { name: "book-flight", version: 1, retry: { attempts: 5, initial: "2s", max: "1m" } },
  async (ctx, city: string) => {
    const [offer] = await ctx.step("prices", () => airline.prices(city));
    if (offer === undefined) throw new NonRetryableError(`Nobody flies to ${city}`);
    return { booking: ctx.uuid(), price: offer.price };
  },
);

export const bookTrip = workflow(
  {
    name: "book-trip",
    version: 1,
    input: z.object({ city: z.string() }),
    signals: { approved: z.object({ by: z.string() }) },
    timeout: "30d",
  },
  async (ctx, { city }) => {
    const [room, flight] = await Promise.all([
      ctx.step("book hotel", ({ idempotencyKey }) => hotel.book(city, idempotencyKey)),
      ctx.call(bookFlight, city),
    ]);
    await ctx.step("ask", () => desk.ask(`Approve ${flight.price} for ${city}?`));
    const approved = await ctx.waitForSignal("approved", { timeout: "2d" });
    if (approved === null) throw new NonRetryableError("Nobody approved it in time");
    await ctx.sleep("1s"); // or "30d": no process is held meanwhile
    return { room: room.booking, flight: flight.booking, by: approved.by, at: ctx.now() };
  },
);
