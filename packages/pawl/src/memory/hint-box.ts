import type { Hint } from "../store/hint.ts";

/** Hands a hint on. The default does so right after the transition; a test may delay or drop it. */
export type Deliver = (send: () => void, hint: Hint) => void;

/** Collects the hints of one transition, each once, and sends them when it is over. */
export interface HintBox {
  add(hint: Hint): void;
  flush(): void;
  subscribe(listener: (hint: Hint) => void): () => void;
}

export function createHintBox(deliver: Deliver): HintBox {
  const listeners = new Set<(hint: Hint) => void>();
  const pending = new Map<string, Hint>();
  return {
    add(hint) {
      pending.set(JSON.stringify(hint), hint);
    },
    flush() {
      const hints = [...pending.values()];
      pending.clear();
      for (const hint of hints) {
        for (const listener of listeners) {
          deliver(() => {
            if (listeners.has(listener)) listener(hint);
          }, hint);
        }
      }
    },
    subscribe(callback) {
      // A function of its own, so that subscribing the same callback twice is two subscriptions.
      const listener = (hint: Hint): void => callback(hint);
      listeners.add(listener);
      return () => {
        listeners.delete(listener);
      };
    },
  };
}
