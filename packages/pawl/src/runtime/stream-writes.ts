import type { PawlError } from "../core/error.ts";
import type { NewStreamItem } from "../store/showing.ts";

/** Something to write to a stream, where it comes next. */
export type Writing = Omit<NewStreamItem, "position">;

/** What a held run writes to its streams: where each comes, and who waits until it is there. */
export interface StreamWrites {
  /** `gather` is given what says that it is done, or why it never will be. Rejects at once after the end. */
  write(gather: (settle: (error: PawlError | null) => void) => void): Promise<void>;
  /** Where each goes. Nobody else writes while the run is held, so `ask` is called once for each stream. */
  place(
    writings: readonly Writing[],
    ask: (names: readonly string[]) => Promise<ReadonlyMap<string, number>>,
  ): Promise<readonly NewStreamItem[]>;
  /** Nothing can be written any more. An error is costly to make, and mostly nobody asks for it. */
  end(reason: () => PawlError): void;
  /** The run is held again. */
  reopen(): void;
}

/** `over`: why nothing can be written, where that is so already. */
export function createStreamWrites(over: (() => PawlError) | null): StreamWrites {
  let reasonOver = over;
  /** The last position in each stream that was written to here. */
  const positions = new Map<string, number>();
  const writers = new Set<(error: PawlError | null) => void>();

  return {
    write(gather) {
      if (reasonOver !== null) return Promise.reject(reasonOver());
      return new Promise((resolve, reject) => {
        const settle = (error: PawlError | null): void => {
          writers.delete(settle);
          if (error === null) resolve();
          else reject(error);
        };
        writers.add(settle);
        gather(settle);
      });
    },
    async place(writings, ask) {
      const unknown = [...new Set(writings.map(({ name }) => name))].filter((name) => !positions.has(name));
      if (unknown.length > 0) {
        const found = await ask(unknown);
        for (const name of unknown) positions.set(name, found.get(name) ?? 0);
      }
      return writings.map((terms) => {
        const position = (positions.get(terms.name) ?? 0) + 1;
        positions.set(terms.name, position);
        return { ...terms, position };
      });
    },
    end(reason) {
      reasonOver ??= reason;
      for (const settle of writers) settle(reason());
    },
    reopen() {
      reasonOver = null;
    },
  };
}
