import type { Driver, OpenDriver } from "./driver.ts";

// A process that drives one product: node host.ts <driver module> <database url>. It is told what to do by messages, and answers
// each with what it took: { call, args } → { answer, ms, cpuMs, rssMb } or { error }.

const [modulePath = "", url = ""] = process.argv.slice(2);
const { open } = (await import(modulePath)) as { readonly open: OpenDriver };
const driver = open(url);

interface Told {
  readonly call: keyof Driver | "cpuMs";
  readonly args: readonly number[];
}

async function act({ call, args }: Told): Promise<unknown> {
  if (call === "cpuMs") return cpuMs();
  const method = driver[call] as ((...args: readonly number[]) => Promise<unknown>) | string;
  return typeof method === "string" ? method : await method.apply(driver, [...args]);
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

process.on("message", (told: Told) => {
  const cpuBefore = cpuMs();
  const beganAt = performance.now();
  act(told).then(
    (answer) => {
      const ms = performance.now() - beganAt;
      const rssMb = process.memoryUsage.rss() / 1e6;
      process.send?.({ answer: answer ?? null, ms, cpuMs: cpuMs() - cpuBefore, rssMb });
      if (told.call === "close") process.disconnect();
    },
    (error: unknown) => process.send?.({ error: error instanceof Error ? error.stack : String(error) }),
  );
});
process.send?.({ answer: "ready", ms: 0, cpuMs: 0, rssMb: 0 });
