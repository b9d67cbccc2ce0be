import { withPg } from "../../src/adapters/index.ts";
import type { Transactor } from "../../src/index.ts";
import type { Shop } from "./transaction-test.ts";

function promiseOf<T>(): { readonly promise: Promise<T>; readonly resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((keep) => {
    resolve = keep;
  });
  return { promise, resolve };
}

/** Transactions that stand still right before their record is sent, until they are let go. */
export function held(shop: Shop): {
  readonly on: Transactor<unknown>;
  readonly isThere: Promise<void>;
  readonly letGo: () => void;
} {
  const real = withPg(shop.pool);
  const there = promiseOf<void>();
  const gone = promiseOf<void>();
  const on: Transactor<unknown> = {
    ...real,
    begin: (work, options) =>
      real.begin(
        (tx, handle) =>
          work(tx, {
            async query(text, values) {
              if (text.includes("record_in_transaction")) {
                there.resolve();
                await gone.promise;
              }
              return handle.query(text, values);
            },
          }),
        options,
      ),
  };
  return { on, isThere: there.promise, letGo: () => gone.resolve() };
}
