import { readFile, stat } from "node:fs/promises";

/** The user the server runs as, when that is not the user we run as. */
export interface ServerUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
}

const unprivilegedUsers = ["postgres", "_postgres", "nobody"];

/**
 * Postgres refuses to run as root, so root picks someone else: whoever owns the cluster already,
 * else `postgres`, else `nobody`. Undefined means that the server runs as we do.
 */
export async function chooseServerUser(clusterDir: string | undefined): Promise<ServerUser | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const owner = clusterDir === undefined ? undefined : await stat(clusterDir).catch(() => undefined);
  if (owner !== undefined && owner.uid !== 0)
    return { name: `user ${owner.uid}`, uid: owner.uid, gid: owner.gid };
  const users = await readUsers();
  for (const name of unprivilegedUsers) {
    const user = users.find((candidate) => candidate.name === name);
    if (user !== undefined && user.uid > 0) return user;
  }
  return { name: "nobody", uid: 65_534, gid: 65_534 };
}

async function readUsers(): Promise<readonly ServerUser[]> {
  const passwd = await readFile("/etc/passwd", "utf8").catch(() => "");
  return passwd.split("\n").map((line) => {
    const [name = "", , uid, gid] = line.split(":");
    return { name, uid: Number(uid), gid: Number(gid) };
  });
}
