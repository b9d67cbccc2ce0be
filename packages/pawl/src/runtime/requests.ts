import type { RequestId } from "./delivery.ts";
import type { Request } from "./request.ts";

/** The requests whose answer the code does not have yet, in the order asked. */
export interface Requests {
  readonly size: number;
  add(request: Request): void;
  find(id: RequestId): Request | undefined;
  all(): readonly Request[];
  /** The code has its answer. */
  settle(request: Request): void;
}

export function createRequests(): Requests {
  const unsettled = new Map<string, Request>();
  const idOf = ({ family, key }: RequestId): string => `${family} ${key}`;
  return {
    get size() {
      return unsettled.size;
    },
    add(request) {
      unsettled.set(idOf(request), request);
    },
    find: (id) => unsettled.get(idOf(id)),
    all: () => [...unsettled.values()],
    settle(request) {
      request.state = "settled";
      unsettled.delete(idOf(request));
    },
  };
}
