import { spawn } from "node:child_process";
import type { ServerUser } from "./server-user.ts";

/** How a program ended. */
export interface ProgramResult {
  readonly exitCode: number | null;
  readonly output: string;
}

/** What else a program is given. */
export interface ProgramOptions {
  readonly user?: ServerUser | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs a program to its end and returns what it wrote. Rejects only if it cannot be started.
 * It runs in the root folder, since another user may not be allowed to stand in ours.
 */
export function runProgram(
  file: string,
  args: readonly string[],
  options: ProgramOptions = {},
): Promise<ProgramResult> {
  const { user, signal } = options;
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      cwd: "/",
      env: postgresEnvironment(),
      stdio: ["ignore", "pipe", "pipe"],
      ...(user === undefined ? {} : { uid: user.uid, gid: user.gid }),
      ...(signal === undefined ? {} : { signal }),
    });
    let output = "";
    const collect = (chunk: Buffer): void => {
      output += chunk.toString();
    };
    child.stdout.on("data", collect);
    child.stderr.on("data", collect);
    // An aborted program is reported once it has ended, so that nothing is left that still writes.
    child.on("error", (error) => {
      if (child.pid === undefined) reject(error);
    });
    child.on("close", (exitCode) => {
      if (signal?.aborted) reject(signal.reason);
      else resolve({ exitCode, output });
    });
  });
}

const passedOn = ["PATH", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "SystemRoot", "TEMP", "TMP"];

/**
 * What of our environment Postgres needs. The rest may hold secrets, which the server's user need not
 * know, or variables that would change what Postgres does.
 */
export function postgresEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => passedOn.includes(name));
  return { ...Object.fromEntries(kept), LC_ALL: "C" };
}
