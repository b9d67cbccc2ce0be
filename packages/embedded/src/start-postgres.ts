import { rm } from "node:fs/promises";
import { prepareBinaries, type Binaries } from "./binaries.ts";
import { EmbeddedPostgresError } from "./embedded-postgres-error.ts";
import { createEmbeddedPostgres, type EmbeddedPostgres } from "./embedded-postgres.ts";
import { folderAt } from "./folder.ts";
import { joinServer, type Membership } from "./join-server.ts";
import { checkOptions, type CheckedOptions, type StartPostgresOptions } from "./options.ts";
import { makeTemporaryFolder, prepareFolder } from "./prepare-folder.ts";
import { chooseServerUser } from "./server-user.ts";

/**
 * Starts a Postgres in a folder, or joins the one that runs there. The server ends when every
 * process that started or joined it has stopped it, exited or been killed. One that runs already
 * keeps its port and settings, whatever is asked for here.
 * @throws {EmbeddedPostgresError} whose `code` and message say what is wrong and what to do
 * @example
 * const postgres = await startPostgres({ dir: ".pawl/postgres" });
 * console.log(postgres.url);
 * await postgres.stop();
 */
export async function startPostgres(options: StartPostgresOptions = {}): Promise<EmbeddedPostgres> {
  const checked = checkOptions(options);
  checked.signal?.throwIfAborted();
  const cluster = checked.dir === undefined ? undefined : folderAt(checked.dir).cluster;
  const user = await chooseServerUser(cluster);
  const binaries = await prepareBinaries(checked.binaries, user);
  const temporary = checked.dir === undefined;
  const dir = temporary ? await makeTemporaryFolder(user) : await prepareFolder(checked.dir, user);
  const { port, strictPort, durable, settings, log, signal } = checked;
  const config = { dir, temporary, binaries, user, port, strictPort, durable, settings };
  try {
    const membership = await joinServer(config, { log, signal });
    await assertAsWanted(membership, checked, binaries, dir);
    return createEmbeddedPostgres(config, membership, log);
  } catch (error) {
    if (temporary) await rm(dir, { recursive: true, force: true });
    throw error;
  }
}

/** A server that others keep running is as they wanted it, which is not to be passed over in silence. */
async function assertAsWanted(
  membership: Membership,
  wanted: CheckedOptions,
  binaries: Binaries,
  dir: string,
): Promise<void> {
  const { version, port } = membership.server;
  const isWantedPort = !wanted.strictPort || wanted.port === port;
  if (isWantedPort && Number.parseInt(version, 10) === binaries.major) return;
  await membership.leave();
  throw new EmbeddedPostgresError(
    "ALREADY_RUNNING",
    `Postgres ${version} already runs in ${dir} on port ${port}; join it as it is, or stop the programs that use it.`,
    { dir, version, port },
  );
}
