import type { Client } from "../../packages/pawl/src/client/client.ts";
import { PawlError } from "../../packages/pawl/src/core/error.ts";
import { updateName } from "../gen/program.ts";
import type { StreamedItem } from "../hist/check-shown.ts";
import type { ClientPort } from "./client-port.ts";

type Asking = Pick<ClientPort, "update" | "published" | "readStream">;

/** What callers ask of a run's code, and look at while it runs. */
export function createAskingPort(client: Pick<Client, "update" | "published" | "stream">): Asking {
  return {
    async update(run, payload) {
      try {
        const options = { idempotencyKey: payload };
        return { status: "answered", output: await client.update(run, updateName, payload, options) };
      } catch (error) {
        if (PawlError.is(error, "UPDATE_FAILED")) return { status: "failed", output: null };
        if (PawlError.is(error, "INVALID_PAYLOAD")) return { status: "refused", output: null };
        throw error;
      }
    },
    published: (run) => client.published(run),
    async readStream(run, name) {
      const items: StreamedItem[] = [];
      for await (const { position, value } of client.stream(run, name)) items.push({ position, value });
      return items;
    },
  };
}
