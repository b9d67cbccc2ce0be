/** A value that somebody may pass by mistake or in malice; some of them are right in some places. */
export interface Junk {
  readonly label: string;
  /** Made anew for each call, so that none can spoil the next. */
  readonly make: () => unknown;
}

function refuse(): never {
  throw new TypeError("hands off");
}

const hostileTraps: ProxyHandler<object> = {
  get: refuse,
  has: refuse,
  ownKeys: refuse,
  getPrototypeOf: refuse,
  getOwnPropertyDescriptor: refuse,
};

function revoked(target: object): unknown {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}

/** All its properties throw, whatever their names. */
function withThrowingGetters(...names: readonly string[]): object {
  const made = {};
  for (const name of names) Object.defineProperty(made, name, { enumerable: true, get: refuse });
  return made;
}

function circle(): object {
  const made: Record<string, unknown> = {};
  made["self"] = made;
  return made;
}

export const junk: readonly Junk[] = [
  { label: "undefined", make: () => undefined },
  { label: "null", make: () => null },
  { label: "NaN", make: () => Number.NaN },
  { label: "-1", make: () => -1 },
  { label: "0", make: () => 0 },
  { label: "1.5", make: () => 1.5 },
  { label: "infinity", make: () => Number.POSITIVE_INFINITY },
  { label: "1e300", make: () => 1e300 },
  { label: "9e15", make: () => 9e15 },
  { label: "a bigint", make: () => 5n },
  { label: "true", make: () => true },
  { label: "an empty text", make: () => "" },
  { label: "NUL", make: () => "a\0b" },
  { label: "half a character", make: () => "\ud800" },
  { label: "a long text", make: () => "é".repeat(300) },
  { label: "a huge text", make: () => "x".repeat(2_000_000) },
  { label: "a text with quotes", make: () => `'; drop table run; -- "` },
  { label: "__proto__", make: () => "__proto__" },
  { label: "a symbol", make: () => Symbol("s") },
  { label: "a function", make: () => refuse },
  { label: "an empty list", make: () => [] },
  { label: "a list", make: () => [null, "", Symbol("s"), {}] },
  { label: "a list with holes", make: () => Array.from<unknown>({ length: 3 }).fill(1, 2) },
  { label: "an empty object", make: () => ({}) },
  { label: "an object without a prototype", make: () => Object.create(null) },
  {
    label: "an instance",
    make: () =>
      new (class Thing {
        readonly timeout = "1s";
      })(),
  },
  { label: "a map", make: () => new Map([["key", "value"]]) },
  { label: "no date", make: () => new Date(Number.NaN) },
  { label: "the first date", make: () => new Date(-8.64e15) },
  { label: "half a date", make: () => Object.create(Date.prototype) },
  { label: "an error", make: () => new Error("thrown") },
  { label: "a promise", make: () => Promise.resolve("late") },
  { label: "a thenable", make: () => withThrowingGetters("then") },
  { label: "a circle", make: circle },
  { label: "__proto__ in JSON", make: () => JSON.parse('{"__proto__":{"polluted":true},"a":1}') },
  { label: "constructor in JSON", make: () => JSON.parse('{"constructor":{"prototype":{"polluted":true}}}') },
  { label: "a revoked proxy", make: () => revoked({}) },
  { label: "a revoked list", make: () => revoked([]) },
  { label: "a hostile proxy", make: () => new Proxy({}, hostileTraps) },
  {
    label: "getters that throw",
    make: () =>
      withThrowingGetters(
        "name",
        "key",
        "timeout",
        "retry",
        "attempts",
        "signal",
        "limit",
        "workflows",
        "url",
      ),
  },
  { label: "toString that throws", make: () => ({ toString: refuse, valueOf: refuse, toJSON: refuse }) },
];
