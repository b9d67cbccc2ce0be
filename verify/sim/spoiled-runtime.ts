import type { Plugin } from "esbuild";
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";
import { bundle } from "../bundle.ts";
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
  const mistake: Plugin = {
    name: "mistake",
    setup(build) {
      build.onLoad({ filter: /\/packages\/pawl\/src\/.*\.ts$/ }, async ({ path }) => {
        if (!path.endsWith(`/packages/pawl/src/${file}`)) return null;
        const code = await readFile(path, "utf8");
        if (code.split(right).length !== 2) throw new Error(`${file} does not hold this once: ${right}`);
        spoilt.push(path);
        return { contents: code.replace(right, () => wrong), loader: "ts" };
      });
    },
  };
  const simulation = await bundle(new URL("schedule.ts", import.meta.url), [mistake]);
  if (spoilt.length === 0) throw new Error(`The simulation does not use ${file}.`);
  const loaded = (await import(pathToFileURL(simulation.path).href)) as {
    readonly runSchedule: typeof runSchedule;
  };
  return { runSchedule: loaded.runSchedule, close: () => simulation.remove() };
}
