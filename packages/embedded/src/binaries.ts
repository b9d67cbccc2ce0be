import { access, realpath } from "node:fs/promises";
import { join } from "node:path";
import { copyBinaries } from "./binaries-cache.ts";
import { EmbeddedPostgresError } from "./embedded-postgres-error.ts";
import { makeLibraryLinks } from "./library-links.ts";
import { findPlatformBinaries } from "./platform-package.ts";
import { runProgram } from "./program.ts";
import { temporaryFolders } from "./reach.ts";
import type { ServerUser } from "./server-user.ts";
import { hasSystemCode } from "./system-code.ts";

/** A Postgres that the server's user can run. */
export interface Binaries {
  readonly dir: string;
  /** For example `18.4`. */
  readonly version: string;
  readonly major: number;
}

/** The file name of one of Postgres's programs in a folder of binaries. */
export function programPath(dir: string, program: "initdb" | "postgres"): string {
  return join(dir, "bin", process.platform === "win32" ? `${program}.exe` : program);
}

/** Finds the binaries and makes them usable: links made, and in a place which `user` can reach. */
export async function prepareBinaries(
  given: string | undefined,
  user: ServerUser | undefined,
): Promise<Binaries> {
  const source = await findBinaries(given ?? findPlatformBinaries());
  if (await makeLibraryLinks(source)) {
    const version = await readVersion(source, user);
    if (version !== "denied") return version;
  }
  const tried: string[] = [source];
  for (const parent of await temporaryFolders(user)) {
    const copy = await copyBinaries(source, parent);
    const version = await readVersion(copy, user);
    if (version !== "denied") return version;
    tried.push(copy);
  }
  throw new EmbeddedPostgresError(
    "BINARIES_UNUSABLE",
    `${user?.name ?? "This user"} may not run the Postgres in ${source}, nor a copy in a temporary folder; set TMPDIR to a folder where programs may be run.`,
    { user: user?.name, tried },
  );
}

async function findBinaries(dir: string): Promise<string> {
  try {
    await access(programPath(dir, "postgres"));
    await access(programPath(dir, "initdb"));
    return await realpath(dir);
  } catch (cause) {
    throw new EmbeddedPostgresError(
      "BINARIES_MISSING",
      `There is no Postgres in ${dir}; it must hold bin/postgres and bin/initdb.`,
      { dir },
      cause,
    );
  }
}

async function readVersion(dir: string, user: ServerUser | undefined): Promise<Binaries | "denied"> {
  const file = programPath(dir, "postgres");
  const result = await runProgram(file, ["--version"], { user }).catch((cause: unknown) => {
    if (hasSystemCode(cause, "EACCES")) return "denied" as const;
    if (user !== undefined && hasSystemCode(cause, "EPERM", "EINVAL")) throw userUnavailable(user, cause);
    throw unusable(file, "it cannot be started", cause);
  });
  if (result === "denied") return result;
  const match = /\(PostgreSQL\) (\d+)(\.\d+|\w+)?/.exec(result.output);
  if (result.exitCode !== 0 || match === null) throw unusable(file, result.output.trim());
  return { dir, version: `${match[1]}${match[2] ?? ""}`, major: Number(match[1]) };
}

function userUnavailable(user: ServerUser, cause: unknown): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    "USER_UNAVAILABLE",
    `Postgres does not run as root, and this root may not start it as ${user.name}; run as an ordinary user.`,
    { user: user.name, uid: user.uid },
    cause,
  );
}

function unusable(file: string, reason: string, cause?: unknown): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    "BINARIES_UNUSABLE",
    `${file} does not run on this system (${reason}); the bundled one needs glibc on Linux, elsewhere name another in the option binaries.`,
    { file, reason },
    cause,
  );
}
