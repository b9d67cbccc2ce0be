import type { Log } from "../core/log.ts";
import type { Watch } from "../core/watch.ts";

type Fields = Readonly<Record<string, unknown>>;

/**
 * Says with every line which run it is about, and says nothing while `isSilent`. For users: a plain object, of which each part
 * can be called by itself.
 */
export function createRunLog(log: Log, about: Fields, isSilent: () => boolean = () => false): Log {
  const write =
    (level: keyof Log) =>
    (message: string, fields: unknown): void => {
      if (!isSilent()) log[level](message, { ...about, ...copyOf(fields) });
    };
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}

/** The same for the engine itself, which makes one for every run and mostly has nothing to say. */
export class EngineLog implements Log {
  readonly #log: Log;
  readonly #about: Fields;

  constructor(log: Log, about: Fields) {
    this.#log = log;
    this.#about = about;
  }

  debug(message: string, fields?: Fields): void {
    this.#log.debug(message, { ...this.#about, ...fields });
  }

  info(message: string, fields?: Fields): void {
    this.#log.info(message, { ...this.#about, ...fields });
  }

  warn(message: string, fields?: Fields): void {
    this.#log.warn(message, { ...this.#about, ...fields });
  }

  error(message: string, fields?: Fields): void {
    this.#log.error(message, { ...this.#about, ...fields });
  }
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
