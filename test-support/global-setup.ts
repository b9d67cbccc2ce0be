import { randomBytes } from "node:crypto";
import type { TestProject } from "vitest/node";
import { postgresSettings } from "./postgres-settings.ts";
import { dropDatabasesOfRun, execute, withDatabase } from "./server-databases.ts";
import { migrateTemplate } from "./template.ts";

/**
 * Starts one Postgres for the whole run, or uses the one that `PAWL_TEST_URL` names, where the role
 * must be allowed to create databases. Prepares the template and removes what the run has made.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const server = await findServer();
  const databasePrefix = `pawl_test_${randomBytes(4).toString("hex")}_`;
  const templateDatabase = `${databasePrefix}template`;

  await execute(server.url, `create database ${templateDatabase}`);
  await migrateTemplate(withDatabase(server.url, templateDatabase));

  project.provide("postgresUrl", server.url);
  project.provide("databasePrefix", databasePrefix);
  project.provide("templateDatabase", templateDatabase);

  return async () => {
    if (server.isShared) await dropDatabasesOfRun(server.url, databasePrefix);
    await server.stop();
  };
}

interface Server {
  readonly url: string;
  /** Whether it outlives this run. */
  readonly isShared: boolean;
  stop(): Promise<void>;
}

async function findServer(): Promise<Server> {
  const url = process.env["PAWL_TEST_URL"];
  if (url !== undefined && url !== "") return { url, isShared: true, stop: async () => {} };
  const { startPostgres } = await import("@pawl/embedded");
  const server = await startPostgres({ durable: false, settings: postgresSettings });
  return { url: server.url, isShared: false, stop: () => server.stop() };
}
