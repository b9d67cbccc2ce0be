import { build, type Plugin } from "esbuild";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export interface Bundle {
  readonly path: string;
  remove(): Promise<void>;
}

/**
 * Puts one file of this folder and all that it needs, the engine included, into one file. As plain text it runs twice as fast as
 * through tsx, which names every function anew each time it is made. No name is shortened, so that what is thrown stays legible.
 */
export async function bundle(file: string, plugins: Plugin[] = []): Promise<Bundle> {
  const folder = await mkdtemp(join(tmpdir(), "pawl-verify-"));
  const path = join(folder, "bundle.mjs");
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    await build({
      entryPoints: [fileURLToPath(new URL(file, import.meta.url))],
      outfile: path,
      bundle: true,
      platform: "node",
      format: "esm",
      target: "node20",
      conditions: ["@pawl/source"],
      logLevel: "error",
      plugins,
    });
  } catch (error) {
    await remove();
    throw error;
  }
  return { path, remove };
}
