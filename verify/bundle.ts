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
 * Puts a program of ours and all that it needs, the engine included, into one file. As plain text it runs twice as fast as
 * through tsx, which names every function anew each time it is made. No name is shortened, so that what is thrown stays legible.
 */
export async function bundle(entry: URL, plugins: Plugin[] = []): Promise<Bundle> {
  const folder = await mkdtemp(join(tmpdir(), "pawl-verify-"));
  const path = join(folder, "bundle.mjs");
  const remove = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    await build({
      entryPoints: [fileURLToPath(entry)],
      outfile: path,
      bundle: true,
      platform: "node",
      format: "esm",
      target: "node20",
      conditions: ["@pawl/source"],
      // What the driver loads by `require`.
      banner: {
        js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);',
      },
      external: ["pg-native"],
      logLevel: "error",
      plugins,
    });
  } catch (error) {
    await remove();
    throw error;
  }
  return { path, remove };
}
