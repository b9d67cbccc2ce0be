import { chmod, mkdtemp, realpath, rm } from "node:fs/promises";
import { join } from "node:path";
import { onTestFinished } from "vitest";

/** A new folder that is removed after the test. Not in `os.tmpdir()`, which tests may point elsewhere. */
export async function makeFolder(): Promise<string> {
  const dir = await realpath(await mkdtemp(join("/tmp", "pawl-embedded-test-")));
  await chmod(dir, 0o755);
  onTestFinished(() => rm(dir, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }));
  return dir;
}
