import { randomBytes } from "node:crypto";
import { chown, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { programPath } from "../binaries.ts";
import { EmbeddedPostgresError } from "../embedded-postgres-error.ts";
import type { Folder } from "../folder.ts";
import { runProgram } from "../program.ts";
import type { SupervisorConfig } from "../supervisor-config.ts";
import { hasSystemCode } from "../system-code.ts";

const draftName = /^data\.draft-/;

/** Makes the cluster if the folder has none, and checks that an existing one is of our version. */
export async function ensureCluster(
  folder: Folder,
  config: SupervisorConfig,
  signal: AbortSignal,
): Promise<void> {
  const names = await readdir(folder.dir);
  for (const name of names) {
    // Left by a supervisor that was killed while it made one.
    if (draftName.test(name))
      await rm(join(folder.dir, name), { recursive: true, force: true, maxRetries: 5 });
  }
  if (names.includes("PG_VERSION")) throw foreign(folder.dir);
  const major = await readMajor(folder.cluster);
  if (major === undefined) return makeCluster(folder, config, signal);
  if (major === config.binaries.major) return;
  throw new EmbeddedPostgresError(
    "DATA_DIR_VERSION",
    `The cluster in ${folder.dir} was made by Postgres ${major} and this is Postgres ${config.binaries.major}; give the binaries of ${major}, or choose another folder.`,
    { dir: folder.dir, found: major, wanted: config.binaries.major },
  );
}

/** Under another name until it is whole, so that a crash never leaves half a cluster. */
async function makeCluster(folder: Folder, config: SupervisorConfig, signal: AbortSignal): Promise<void> {
  const draft = join(folder.dir, `data.draft-${randomBytes(4).toString("hex")}`);
  const password = `${draft}.password`;
  try {
    await runInitdb(folder, draft, password, config, signal);
    await rename(password, join(draft, basename(folder.password)));
    await rename(draft, folder.cluster);
  } catch (error) {
    if (hasSystemCode(error, "ENOTEMPTY", "EEXIST", "ENOTDIR")) throw foreign(folder.dir);
    throw error;
  } finally {
    await rm(draft, { recursive: true, force: true, maxRetries: 5 });
    await rm(password, { force: true });
  }
}

async function runInitdb(
  folder: Folder,
  draft: string,
  password: string,
  config: SupervisorConfig,
  signal: AbortSignal,
): Promise<void> {
  const { user, binaries } = config;
  await mkdir(draft, { mode: 0o700 });
  await writeFile(password, randomBytes(24).toString("base64url"), { mode: 0o600 });
  if (user !== undefined) {
    await chown(draft, user.uid, user.gid);
    await chown(password, user.uid, user.gid);
  }
  const initdb = programPath(binaries.dir, "initdb");
  const { exitCode, output } = await runProgram(initdb, initdbArguments(draft, password, config), {
    user,
    signal,
  });
  if (exitCode === 0) return;
  const log = output.trim().slice(-4000);
  throw new EmbeddedPostgresError(
    "INIT_FAILED",
    `initdb could not make a cluster in ${folder.dir}; the end of what it says is:\n${log}`,
    { dir: folder.dir, exitCode, log },
  );
}

function initdbArguments(draft: string, password: string, config: SupervisorConfig): readonly string[] {
  const args = [
    "-D",
    draft,
    "-U",
    "postgres",
    `--pwfile=${password}`,
    "-A",
    "scram-sha-256",
    "-E",
    "UTF8",
    "--locale=C",
  ];
  if (config.binaries.major >= 17) args.push("--locale-provider=builtin", "--builtin-locale=C.UTF-8");
  if (config.temporary || !config.durable) args.push("--no-sync");
  return args;
}

async function readMajor(cluster: string): Promise<number | undefined> {
  try {
    return Number.parseInt(await readFile(join(cluster, "PG_VERSION"), "utf8"), 10);
  } catch (error) {
    if (hasSystemCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

function foreign(dir: string): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    "DATA_DIR_FOREIGN",
    `${dir} holds files that are not an embedded Postgres of ours; choose an empty folder.`,
    { dir },
  );
}
