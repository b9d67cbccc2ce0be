import { onTestFinished } from "vitest";
import { startPostgres, type EmbeddedPostgres, type StartPostgresOptions } from "../src/index.ts";
import { binaries } from "./binaries.ts";
import "./patience.ts";

/** Starts one that ends with the test, and without waiting for the disk. */
export async function start(options: StartPostgresOptions = {}): Promise<EmbeddedPostgres> {
  const given = binaries === undefined ? {} : { binaries };
  const postgres = await startPostgres({ durable: false, ...given, ...options });
  onTestFinished(() => postgres.stop());
  return postgres;
}
