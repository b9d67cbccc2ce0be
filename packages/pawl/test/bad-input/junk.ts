/** A value that somebody may pass by mistake or in malice; some of them are right in some places. */
export interface Junk {
  readonly label: string;
  /** Made anew for each call, so that none can spoil the next. */
  readonly make: () => unknown;
  /** What comes back of it need not be equal: it is awaited on its way, or another each time it is read. */
  readonly changes?: true;
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

/** So many objects in each other. */
function nest(levels: number): unknown {
  let made: unknown = 1;
  for (let level = 0; level < levels; level++) made = level % 2 === 0 ? [made] : { in: made };
  return made;
}

/** Answers each of these in turn, the last one for ever. */
function fickle(...answers: readonly unknown[]): object {
  let reads = 0;
  return Object.defineProperty({}, "a", {
    enumerable: true,
    get: () => answers[Math.min(reads++, answers.length - 1)],
  });
}

function rejected(): Promise<never> {
  const promise: Promise<never> = Promise.reject(new Error("rejected"));
  // Nobody but the caller could be to blame.
  promise.catch(() => {});
  return promise;
}

const anError = new Error("thrown");

const nothing: readonly Junk[] = [
  { label: "undefined", make: () => undefined },
  { label: "null", make: () => null },
  { label: "true", make: () => true },
];

const numbers: readonly Junk[] = [
  ...[-1, -0, 0, 1, 1.5, 1e300, 9e15, 5e-324, 2 ** 31 - 1, 2 ** 31, -(2 ** 31) - 1, 2 ** 53, 1e12].map(
    (number) => ({ label: Object.is(number, -0) ? "-0" : String(number), make: () => number }),
  ),
  { label: "NaN", make: () => Number.NaN },
  { label: "infinity", make: () => Number.POSITIVE_INFINITY },
  { label: "minus infinity", make: () => Number.NEGATIVE_INFINITY },
  { label: "a bigint", make: () => 5n },
  { label: "a huge bigint", make: () => 10n ** 4_000n },
];

/** Texts that have had a meaning to some program, and of every awkward length. */
const texts: readonly Junk[] = [
  { label: "an empty text", make: () => "" },
  { label: "NUL", make: () => "a\0b" },
  { label: "half a character", make: () => "\ud800" },
  { label: "the other half", make: () => "wf-\udfff" },
  { label: "255 bytes", make: () => "x".repeat(255) },
  { label: "256 bytes", make: () => `é${"x".repeat(254)}` },
  { label: "a long text", make: () => "é".repeat(300) },
  { label: "3,000 characters", make: () => Array.from({ length: 3_000 }, (_, n) => n % 36).join("") },
  { label: "a huge text", make: () => "x".repeat(2_000_000) },
  ...[
    `'; drop table run; -- "`,
    "' or '1'='1",
    "\\'; select pg_sleep(9); --",
    "$1",
    "{schema}",
    "$$; select 1; $$",
    "%' or id::text like '%",
    "a_b%",
    "E'\\x27'",
    "../../etc/passwd",
    "%00",
    "=1+1",
    "\\",
    "a\nb\r\t",
    "\u202eright to left",
    "👩‍👩‍👧‍👦 🎉",
    "__proto__",
    "constructor",
    "toString",
    "infinity",
    "-infinity",
    "NaN",
    "1e400",
    "-1s",
    "１s",
    "99999999999999999w",
    "00000000-0000-0000-0000-000000000000",
    "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
    "\\u0000",
    "null",
  ].map((text) => ({ label: JSON.stringify(text), make: () => text })),
];

const objects: readonly Junk[] = [
  { label: "a symbol", make: () => Symbol("s") },
  { label: "a function", make: () => refuse },
  { label: "an empty list", make: () => [] },
  { label: "a list", make: () => [null, "", Symbol("s"), {}] },
  { label: "a list with holes", make: () => Array.from<unknown>({ length: 3 }).fill(1, 2) },
  {
    label: "a list with a name",
    make: () => Object.assign([1], { name: "list" }),
  },
  { label: "an endless list", make: () => Object.assign([], { length: 2 ** 32 - 1 }) },
  { label: "an empty object", make: () => ({}) },
  { label: "an object without a prototype", changes: true, make: () => Object.create(null) as unknown },
  {
    label: "an instance",
    make: () =>
      new (class Thing {
        readonly timeout = "1s";
      })(),
  },
  { label: "a map", make: () => new Map([["key", "value"]]) },
  { label: "a set", make: () => new Set(["key", Number.NaN]) },
  { label: "a regular expression", make: () => /x/g },
  { label: "bytes", make: () => Buffer.from([0, 255]) },
  { label: "wide bytes", make: () => new Float64Array([Number.NaN]) },
  { label: "a text in a box", make: () => Object("boxed") as unknown },
  { label: "a number in a box", make: () => Object(1) as unknown },
  { label: "no date", make: () => new Date(8.64e15 + 1) },
  { label: "the first date", make: () => new Date(-8.64e15) },
  { label: "the last date", make: () => new Date(8.64e15) },
  { label: "half a date", make: () => Object.create(Date.prototype) as unknown },
  { label: "an error", make: () => anError },
  { label: "a promise", changes: true, make: () => Promise.resolve("late") },
  { label: "a broken promise", changes: true, make: rejected },
  { label: "a thenable", changes: true, make: () => withThrowingGetters("then") },
  { label: "a circle", make: circle },
  { label: "100 levels", make: () => nest(100) },
  { label: "101 levels", make: () => nest(101) },
  { label: "20,000 levels", make: () => nest(20_000) },
  {
    label: "__proto__ in JSON",
    make: () => JSON.parse('{"__proto__":{"polluted":true},"a":1}') as unknown,
  },
  {
    label: "constructor in JSON",
    make: () => JSON.parse('{"constructor":{"prototype":{"polluted":true}}}') as unknown,
  },
  { label: "keys that cannot be stored", make: () => ({ "a\0": 1, "\ud800": 2 }) },
];

const hostile: readonly Junk[] = [
  { label: "a revoked proxy", changes: true, make: () => revoked({}) },
  { label: "a revoked list", changes: true, make: () => revoked([]) },
  { label: "a revoked function", changes: true, make: () => revoked(() => {}) },
  { label: "a hostile proxy", changes: true, make: () => new Proxy({}, hostileTraps) },
  { label: "a hostile function", changes: true, make: () => new Proxy(() => {}, hostileTraps) },
  { label: "a list with a hostile item", make: () => [new Proxy({}, hostileTraps), revoked({})] },
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
        "before",
      ),
  },
  { label: "toString that throws", make: () => ({ toString: refuse, valueOf: refuse, toJSON: refuse }) },
  { label: "a toJSON of its own", make: () => ({ a: 1, toJSON: () => ({ b: 2 }) }) },
  { label: "a number that turns into none", changes: true, make: () => fickle(1, Number.NaN) },
  { label: "a text that turns bad", changes: true, make: () => fickle("good", "b\0d") },
  { label: "a leaf that turns into a circle", changes: true, make: () => fickle(1, circle()) },
  { label: "a number that turns into undefined", changes: true, make: () => fickle(1, undefined) },
];

export const junk: readonly Junk[] = [...nothing, ...numbers, ...texts, ...objects, ...hostile];

/** What an error may have on it, and Pawl looks at. */
export const errorProperties: readonly string[] =
  "name message stack code cause errors notUndone retryable retryAfterMs retryAt details".split(" ");
