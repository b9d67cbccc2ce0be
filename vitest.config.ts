import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

/** Workspace packages are run from their sources, not from `dist`. */
const conditions = ["@pawl/source", "module", "node", "development|production"];

export default defineConfig({
  ssr: { resolve: { conditions } },
  // Where vitest loads the global setup.
  environments: { __vitest__: { resolve: { conditions } } },
  test: {
    include: [
      "packages/*/{src,test}/**/*.test.ts",
      "{verify,bench,examples,scripts,test-support}/**/*.test.ts",
    ],
    globalSetup: ["test-support/global-setup.ts"],
    // Most tests wait for Postgres, so a file per core leaves the cores idle.
    maxWorkers: Math.max(2, availableParallelism()),
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // A machine that does much else stands still for seconds.
    expect: { poll: { timeout: 15_000 } },
  },
});
