import type { Log } from "../core/log.ts";
import type { Watch } from "../core/watch.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Says with every line which run it is about, and says nothing while `isSilent`. */
export function createRunLog(log: Log, about: Fields, isSilent: () => boolean = () => false): Log {
  const write =
    (level: keyof Log) =>
    (message: string, fields: unknown): void => {
      if (!isSilent()) log[level](message, { ...about, ...copyOf(fields) });
    };
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}

/**
 * Nothing of what throws at whoever reads it: a line that threw the first time, and not when it is left out, would have the
 * code take another course when it is replayed.
 */
function copyOf(fields: unknown): Fields {
  try {
    return typeof fields === "object" ? { ...fields } : {};
  } catch {
    return {};
  }
}

/** The same log, whose own doings are nobody's mistake. */
export function unwatched(log: Log, watch: Watch): Log {
  const write =
    (level: keyof Log) =>
    (message: string, fields: Fields = {}): void =>
      watch.outside(() => log[level](message, fields));
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}
