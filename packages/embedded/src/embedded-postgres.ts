import { createDatabase, dropDatabase } from "./database.ts";
import { EmbeddedPostgresError } from "./embedded-postgres-error.ts";
import { joinServer, type JoinOptions, type Membership } from "./join-server.ts";
import type { SupervisorConfig } from "./supervisor-config.ts";

/** A running Postgres, of which this process is an owner. It ends with its last owner. */
export interface EmbeddedPostgres extends AsyncDisposable {
  /** Connects as superuser to the database `postgres`. */
  readonly url: string;
  readonly host: string;
  readonly port: number;
  /** The folder that everything is in. Give it to another process to share the server. */
  readonly dir: string;
  /** For example `18.4`. */
  readonly version: string;
  /**
   * Makes a database and returns its URL. A template is copied, which is quicker than migrating
   * again; nobody may be connected to it meanwhile.
   * @throws {EmbeddedPostgresError} `QUERY_FAILED`, for instance if the name is taken
   */
  createDatabase(name: string, template?: string): Promise<string>;
  /** Removes a database, also one in use. One that is not there is no error. */
  dropDatabase(name: string): Promise<void>;
  /**
   * Gives up this owner's part. Resolves once the server has ended and a temporary folder is
   * gone, or at once if there are other owners. A second call awaits the first.
   */
  stop(): Promise<void>;
}

const host = "127.0.0.1";

/** Keeps an owner's part in the server, and takes it up again if the supervisor dies. */
export function createEmbeddedPostgres(
  config: SupervisorConfig,
  first: Membership,
  log: JoinOptions["log"],
): EmbeddedPostgres {
  const { port, password, version } = first.server;
  let membership: Promise<Membership> = Promise.resolve(first);
  let stopping: Promise<void> | undefined;

  const urlOf = (database: string): string =>
    `postgres://postgres:${password}@${host}:${port}/${encodeURIComponent(database)}`;

  const keepMembership = async (): Promise<void> => {
    try {
      for (;;) {
        const current = await membership;
        await current.ended;
        if (stopping !== undefined) return;
        membership = joinServer({ ...config, port, strictPort: true }, { log });
      }
    } catch (error) {
      log?.(`The embedded Postgres in ${config.dir} is gone: ${String(error)}`);
    }
  };
  // Outlives this call: it ends after `stop`, or with the process.
  void keepMembership();

  const assertRunning = (): void => {
    if (stopping === undefined) return;
    throw new EmbeddedPostgresError("STOPPED", "This embedded Postgres has been stopped; start another.", {
      dir: config.dir,
    });
  };

  const stop = (): Promise<void> => {
    stopping ??= membership.then(
      (current) => current.leave(),
      // Already gone, and reported: there is nothing left to stop.
      () => undefined,
    );
    return stopping;
  };

  return {
    url: urlOf("postgres"),
    host,
    port,
    dir: config.dir,
    version,
    async createDatabase(name, template) {
      assertRunning();
      await createDatabase(urlOf("postgres"), name, template);
      return urlOf(name);
    },
    async dropDatabase(name) {
      assertRunning();
      await dropDatabase(urlOf("postgres"), name);
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}
