import { execFileSync } from "node:child_process";
import { cp, lstat, mkdir, mkdtemp, readdir, readlink, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Mutant } from "./mutant.ts";

const root = join(import.meta.dirname, "../..");

/** A copy of the sources as they are, to be spoilt and thrown away. */
export class ThrowAwayTree implements AsyncDisposable {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  static async create(): Promise<ThrowAwayTree> {
    const tree = new ThrowAwayTree(await mkdtemp(join(tmpdir(), "pawl-mutant-")));
    for (const file of sourceFiles()) {
      await mkdir(dirname(join(tree.path, file)), { recursive: true });
      await cp(join(root, file), join(tree.path, file), { verbatimSymlinks: true });
    }
    await linkModules(join(root, "node_modules"), join(tree.path, "node_modules"));
    return tree;
  }

  /** @throws where the patch does not fit: the source has changed, and it must be written anew */
  spoil(mutant: Mutant): void {
    this.#apply(mutant);
  }

  mend(mutant: Mutant): void {
    this.#apply(mutant, "--reverse");
  }

  #apply({ path, isInSql }: Mutant, ...options: readonly string[]): void {
    // Inside a repository, git would leave out what is not its own.
    const env = { ...process.env, GIT_CEILING_DIRECTORIES: dirname(this.path) };
    execFileSync("git", ["apply", ...options, path], {
      cwd: this.path,
      env,
      stdio: ["ignore", "ignore", "pipe"],
    });
    if (isInSql) execFileSync(process.execPath, ["scripts/generate.mjs"], { cwd: this.path });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }
}

function sourceFiles(): readonly string[] {
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: root,
    encoding: "utf8",
  });
  const deleted = execFileSync("git", ["ls-files", "-z", "--deleted"], { cwd: root, encoding: "utf8" });
  const gone = new Set(deleted.split("\0"));
  return listed.split("\0").filter((file) => file !== "" && !gone.has(file));
}

/** The packages of this workspace are links into it, and must lead into the copy; all others are the same. */
async function linkModules(from: string, to: string): Promise<void> {
  await mkdir(to);
  for (const name of await readdir(from)) {
    const [source, target] = [join(from, name), join(to, name)];
    const isLink = (await lstat(source)).isSymbolicLink();
    if (!isLink && name.startsWith("@")) await linkModules(source, target);
    else await symlink(isLink ? await readlink(source) : source, target);
  }
}
