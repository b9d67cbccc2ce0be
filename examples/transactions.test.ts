import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { createDatabase, dropDatabase } from "pawl-test-support";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..");

test.for(["examples/transactions/record.ts", "examples/transactions/other-database.ts"])(
  "%s prints what its page says",
  { timeout: 60_000 },
  async (path) => {
    const page = await readFile(join(root, "docs/transactions.md"), "utf8");
    const after = page.slice(page.indexOf(`<!-- example: ${path} -->`));
    const said = /<!-- \/example -->\n\n```text\n([^]*?)```/.exec(after)?.[1];
    const [own, shop] = await Promise.all([createDatabase("empty"), createDatabase("empty")]);
    try {
      const args = ["--import", "tsx", "--conditions=@pawl/source", join(root, path)];
      const { stdout, stderr } = await promisify(execFile)(process.execPath, args, {
        env: { ...process.env, DATABASE_URL: own.url, SHOP_DATABASE_URL: shop.url },
        timeout: 50_000,
      });
      expect(stderr).toBe("");
      expect(stdout).toBe(said);
    } finally {
      await Promise.all([dropDatabase(own), dropDatabase(shop)]);
    }
  },
);
