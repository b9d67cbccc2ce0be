import { spawn } from "node:child_process";
import { open } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { SupervisorConfig } from "./supervisor-config.ts";

/** What the supervisor itself writes, if it fails: the server has a log of its own. */
export function supervisorLog(dir: string): string {
  return join(dir, "supervisor.log");
}

/**
 * Starts a supervisor and returns the connection to it. It has a session of its own, so that a
 * Ctrl-C or a closed terminal does not reach it, and does not keep this process alive.
 */
export async function spawnSupervisor(config: SupervisorConfig): Promise<Duplex> {
  const stderr = await open(supervisorLog(config.dir), "a", 0o600);
  try {
    const child = spawn(process.execPath, [...supervisorArguments(), JSON.stringify(config)], {
      cwd: "/",
      detached: true,
      env: supervisorEnvironment(),
      stdio: ["ignore", "ignore", stderr.fd, "pipe"],
      windowsHide: true,
    });
    // A process that cannot be started closes its pipe as well, which is where we notice.
    child.on("error", () => undefined);
    child.unref();
    return child.stdio[3] as Duplex;
  } finally {
    await stderr.close();
  }
}

/** Our sources run as they are where Node strips types; Node 20 needs tsx. Built, neither matters. */
function supervisorArguments(): readonly string[] {
  const isSource = import.meta.url.endsWith(".ts");
  const main = fileURLToPath(new URL(`./supervisor/main.${isSource ? "ts" : "js"}`, import.meta.url));
  const stripsTypes = "typescript" in process.features && Boolean(process.features.typescript);
  if (!isSource || stripsTypes) return [main];
  const tsx = createRequire(import.meta.url).resolve("tsx");
  return ["--import", pathToFileURL(tsx).href, main];
}

/** A debugger or a loader that is meant for this process would only hold up the other. */
function supervisorEnvironment(): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _options, NODE_V8_COVERAGE: _coverage, ...kept } = process.env;
  return kept;
}
