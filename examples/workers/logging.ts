import { createPawl, type Log } from "pawl";

/** What pino, bunyan and their like have in common: fields first, then the message. */
interface FieldsFirst {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** `createPawl({ url, log: fieldsFirst(pino()) })` */
export function fieldsFirst(logger: FieldsFirst): Log {
  const write =
    (level: keyof Log): Log[keyof Log] =>
    (message, fields = {}) => {
      // Pino knows errors by the name `err`.
      const { error, ...rest } = fields;
      logger[level](error === undefined ? rest : { ...rest, err: error }, message);
    };
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}

// The console has the same methods as our log, so it can be given as it is: `log: console`. Here, only what matters:
const quiet: Log = { ...console, debug: () => {}, info: () => {} };
await using pawl = createPawl({ memory: true, log: quiet });
console.log((await pawl.health()).ok);
