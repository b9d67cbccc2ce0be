import { isAbsolute, resolve } from "node:path";
import { closestWord } from "./closest-word.ts";
import { EmbeddedPostgresError } from "./embedded-postgres-error.ts";

/** How to start a Postgres. Every field may be left out. */
export interface StartPostgresOptions {
  /**
   * The folder to keep everything in; made if it is missing. Default: a temporary one, removed
   * when its last owner has gone, also when that owner was killed.
   */
  readonly dir?: string;
  /** The port to try first. Default, and zero: the one used last in this folder, else any free one. */
  readonly port?: number;
  /** Whether a busy `port` is an error, `PORT_BUSY`, and not replaced by a free one. Default: false. */
  readonly strictPort?: boolean;
  /** Whether commits survive a power cut. Default: true. False is much faster: for tests. */
  readonly durable?: boolean;
  /** Settings of the server, as in `postgresql.conf`. Address, port and sockets are ours. Default: none. */
  readonly settings?: Readonly<Record<string, string>>;
  /** A folder with the `bin`, `lib` and `share` of another Postgres, 14 or later. Default: the bundled one. */
  readonly binaries?: string;
  /** Receives each line of the server's log. Default: none; the log is in the folder as well. */
  readonly log?: (line: string) => void;
  /** Gives up starting when aborted. Once the server is up it has no effect: call `stop`. */
  readonly signal?: AbortSignal;
}

/** The options, checked, with their defaults filled in. */
export interface CheckedOptions {
  readonly dir: string | undefined;
  readonly port: number;
  readonly strictPort: boolean;
  readonly durable: boolean;
  readonly settings: Readonly<Record<string, string>>;
  readonly binaries: string | undefined;
  readonly log: ((line: string) => void) | undefined;
  readonly signal: AbortSignal | undefined;
}

const knownOptions = ["dir", "port", "strictPort", "durable", "settings", "binaries", "log", "signal"];
const settingName = /^[a-z_][a-z0-9_.]*$/i;
const reservedSettings = new Set(["port", "listen_addresses", "unix_socket_directories", "data_directory"]);

/** Checks what the user gave, once, at the edge. @throws {EmbeddedPostgresError} `INVALID_OPTION` */
export function checkOptions(given: StartPostgresOptions): CheckedOptions {
  const options = copyOf("options", given) as StartPostgresOptions;
  for (const key of Object.keys(options)) {
    if (!knownOptions.includes(key)) {
      throw invalid(
        key,
        `startPostgres has no option "${key}"; did you mean "${closestWord(key, knownOptions)}"?`,
      );
    }
  }
  const port = options.port ?? 0;
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw invalid("port", "The option port must be a whole number from 0 to 65535.");
  }
  assertType("strictPort", options.strictPort, "boolean");
  assertType("durable", options.durable, "boolean");
  assertType("log", options.log, "function");
  if (options.signal !== undefined && !isSignal(options.signal))
    throw invalid("signal", "The option signal must be an AbortSignal, or be left out.");
  const strictPort = options.strictPort ?? false;
  if (strictPort && port === 0) {
    throw invalid("strictPort", "The option strictPort needs a port; give one, or leave strictPort out.");
  }
  return {
    dir: checkFolder("dir", options.dir),
    port,
    strictPort,
    durable: options.durable ?? true,
    settings: checkSettings(copyOf("settings", options.settings ?? {})),
    binaries: checkFolder("binaries", options.binaries),
    log: options.log,
    signal: options.signal,
  };
}

/** A copy: what was checked is what is used. It may come from anywhere, and throw at whoever reads it. */
function copyOf(option: string, given: unknown): Record<string, unknown> {
  try {
    if (typeof given === "object" && given !== null && !Array.isArray(given)) return { ...given };
  } catch {
    // It is none that can be read.
  }
  throw invalid(option, `The ${option} of startPostgres must be an object that can be read.`);
}

function isSignal(value: unknown): boolean {
  try {
    return typeof (value as AbortSignal).throwIfAborted === "function";
  } catch {
    return false;
  }
}

function assertType(option: string, value: unknown, type: "boolean" | "function"): void {
  if (value === undefined || typeof value === type) return;
  throw invalid(option, `The option ${option} must be a ${type}, or be left out.`);
}

function checkFolder(option: string, folder: unknown): string | undefined {
  if (folder === undefined) return undefined;
  if (typeof folder !== "string" || folder === "" || folder.includes("\0")) {
    throw invalid(option, `The option ${option} is not a path; name a folder, or leave it out.`);
  }
  return isAbsolute(folder) ? resolve(folder) : resolve(process.cwd(), folder);
}

function checkSettings(settings: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  for (const [name, value] of Object.entries(settings)) {
    if (!settingName.test(name)) {
      throw invalid(
        "settings",
        `"${name}" is not the name of a Postgres setting; write it as in postgresql.conf.`,
      );
    }
    if (typeof value !== "string" || value.includes("\0")) {
      throw invalid("settings", `The setting "${name}" must be a text without NUL, as in postgresql.conf.`);
    }
    if (reservedSettings.has(name.toLowerCase())) {
      throw invalid(
        "settings",
        `The setting "${name}" is decided by startPostgres; use its options dir and port.`,
      );
    }
  }
  return settings as Readonly<Record<string, string>>;
}

function invalid(option: string, message: string): EmbeddedPostgresError {
  return new EmbeddedPostgresError("INVALID_OPTION", message, { option });
}
