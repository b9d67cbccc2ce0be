export { EmbeddedPostgresError } from "./embedded-postgres-error.ts";
export type { EmbeddedPostgresErrorCode } from "./embedded-postgres-error.ts";
export type { EmbeddedPostgres } from "./embedded-postgres.ts";
export type { StartPostgresOptions } from "./options.ts";
export { startPostgres } from "./start-postgres.ts";
