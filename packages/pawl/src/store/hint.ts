import type { RunId } from "../core/ids.ts";

/**
 * - `ready`: work may be claimable on this queue.
 * - `told`: this run, held by somebody, has unread messages.
 * - `sent`: a caller's transaction stored a message for this run: look whether it wakes it.
 * - `ended`: this run has ended.
 * - `answered`: this run has answered an update.
 * - `written`: this run has written to a stream.
 * - `reconnected`: hints may have been lost; look at everything once.
 */
export type Hint =
  | { readonly kind: "ready"; readonly queue: string }
  | { readonly kind: "told" | "sent" | "ended" | "answered" | "written"; readonly runId: RunId }
  | { readonly kind: "reconnected" };
