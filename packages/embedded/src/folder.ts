import { join } from "node:path";

/** Where things are in the folder of one embedded Postgres. */
export interface Folder {
  readonly dir: string;
  /** The cluster: what Postgres calls the data directory. */
  readonly cluster: string;
  /** The superuser's password. In the cluster, so that one is never there without the other. */
  readonly password: string;
  /** The port last used. */
  readonly port: string;
  readonly log: string;
  readonly previousLog: string;
}

export function folderAt(dir: string): Folder {
  const cluster = join(dir, "data");
  return {
    dir,
    cluster,
    password: join(cluster, "pawl.password"),
    port: join(dir, "port"),
    log: join(dir, "postgres.log"),
    previousLog: join(dir, "postgres.previous.log"),
  };
}
