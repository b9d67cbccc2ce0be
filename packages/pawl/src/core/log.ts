/** Where the engine reports what a person should know. Silent by default. */
export interface Log {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void;
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

const nothing = (): void => {};
export const silentLog: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };

/** Keeps a log's own failures from the engine, which has nobody to report them to. */
export function guardLog(log: Log): Log {
  const write =
    (level: keyof Log) =>
    (message: string, fields?: Readonly<Record<string, unknown>>): void => {
      try {
        const answer: unknown = log[level](message, fields);
        if (answer instanceof Promise) answer.catch(() => {});
      } catch {
        // A log that throws must not stop a run.
      }
    };
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}
