/** Where the engine reports what a person should know. Silent by default. */
export interface Log {
  debug(message: string, fields?: Readonly<Record<string, unknown>>): void;
  info(message: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(message: string, fields?: Readonly<Record<string, unknown>>): void;
  error(message: string, fields?: Readonly<Record<string, unknown>>): void;
}

const nothing = (): void => {};
export const silentLog: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
