import { fileURLToPath } from "node:url";
import { createViteServer } from "vitest/node";
import type { runSchedule } from "./schedule.ts";

/** A change to the text of one source file. */
export interface Mistake {
  /** Under `packages/pawl/src`. */
  readonly file: string;
  /** Occurs once in the file. */
  readonly right: string;
  readonly wrong: string;
}

interface SpoiledSimulation {
  readonly runSchedule: typeof runSchedule;
  close(): Promise<void>;
}

/** Loads the simulation and the whole engine anew, from sources with a mistake in them. */
export async function spoilRuntime({ file, right, wrong }: Mistake): Promise<SpoiledSimulation> {
  const spoilt: string[] = [];
  const server = await createViteServer({
    configFile: false,
    root: fileURLToPath(new URL("../..", import.meta.url)),
    logLevel: "error",
    appType: "custom",
    server: { middlewareMode: true, watch: null, ws: false, hmr: false },
    optimizeDeps: { noDiscovery: true },
    plugins: [
      {
        name: "mistake",
        enforce: "pre",
        transform(code, id) {
          if (!id.endsWith(`/packages/pawl/src/${file}`)) return null;
          if (code.split(right).length !== 2) throw new Error(`${file} does not hold this once: ${right}`);
          spoilt.push(id);
          return code.replace(right, () => wrong);
        },
      },
    ],
  });
  const loaded = await server.ssrLoadModule("/verify/sim/schedule.ts");
  if (spoilt.length === 0) throw new Error(`The simulation does not use ${file}.`);
  return { runSchedule: loaded["runSchedule"] as typeof runSchedule, close: () => server.close() };
}
