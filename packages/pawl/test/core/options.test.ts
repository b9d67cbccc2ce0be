import { expect, test } from "vitest";
import { PawlError } from "../../src/core/error.ts";
import { assertName } from "../../src/core/name.ts";
import {
  checkDuration,
  checkInteger,
  checkList,
  checkName,
  checkNested,
  checkOneOf,
  checkOptions,
  exclude,
} from "../../src/core/options.ts";
import { workflow } from "../../src/runtime/workflow.ts";

const checks = { attempts: checkInteger(1, 10), timeout: checkDuration, mode: checkOneOf("a", "b") };

test.each<[unknown, string]>([
  [{ atempts: 1 }, 'There is no option "atempts" of thing. Did you mean "attempts"?'],
  [{ zebra: 1 }, 'There is no option "zebra" of thing. Known are attempts, timeout, mode.'],
  [{ constructor: 1 }, 'There is no option "constructor" of thing.'],
  [{ attempts: 0 }, 'The option "attempts" of thing must be from 1 to 10.'],
  [{ attempts: 1.5 }, "must be a whole number"],
  [{ timeout: "1 year" }, 'must be a duration, such as "30s"'],
  [{ mode: "c" }, 'must be "a" or "b"'],
  [null, "The options of thing must be a plain object."],
])("a wrong option is refused with advice: %j", (options, message) => {
  expect(() => checkOptions("thing", options as object, checks)).toThrow(
    expect.objectContaining({ code: "INVALID_OPTION", message: expect.stringContaining(message) }),
  );
});

test("an option that is undefined counts as not given", () => {
  expect(() => checkOptions("thing", { attempts: undefined }, checks)).not.toThrow();
});

test.each<[string, object]>([
  ["unknown", { name: "a", version: 1, retires: {} }],
  ["unknown in retry", { name: "a", version: 1, retry: { attemps: 1 } }],
  ["no version", { name: "a" }],
  ["version 0", { name: "a", version: 0 }],
  ["not a schema", { name: "a", version: 1, input: {} }],
  ["not a schema for a signal", { name: "a", version: 1, signals: { s: {} } }],
  ["crash limit", { name: "a", version: 1, crashLimit: 0 }],
])("a workflow's options are checked: %s", (_name, options) => {
  expect(() => workflow(options as never, async () => {})).toThrow(
    expect.objectContaining({ code: "INVALID_OPTION" }),
  );
});

test("a workflow has its defaults", () => {
  expect(workflow({ name: "a", version: 1 }, async () => {})).toMatchObject({
    queue: "default",
    timeoutMs: null,
    crashLimit: 5,
    retry: { attempts: 3, initialMs: 1_000, maxMs: 300_000, factor: 2, delaysMs: null, jitter: true },
    retryIf: null,
  });
  expect(workflow({ name: "a", version: 1, onCrash: "fail" }, async () => {}).crashLimit).toBe(0);
});

test.each([[""], ["a\0"], ["\ud800"], ["é".repeat(128)], [7]])(
  "a name that a store cannot hold is refused: %j",
  (name) => {
    expect(() => assertName("step", name)).toThrow(expect.objectContaining({ code: "INVALID_NAME" }));
  },
);

test("a name may have 255 bytes of anything else", () => {
  expect(() => assertName("step", `${"é".repeat(127)}'`)).not.toThrow();
});

function refusal(call: () => unknown): PawlError {
  try {
    call();
  } catch (error) {
    if (error instanceof PawlError) return error;
    throw error;
  }
  throw new Error("Nothing was refused.");
}

test("one error names all that is wrong: unknown, wrong, missing, exclusive and nested options", () => {
  const options = { atempts: 1, mode: "c", at: 1, delay: 2, inner: { count: 0, cuont: 1 }, names: ["a", ""] };
  const nested = { count: checkInteger(1, 2) };
  const error = refusal(() =>
    checkOptions(
      "thing",
      options,
      {
        ...checks,
        at: checkDuration,
        delay: checkDuration,
        id: checkName,
        inner: checkNested(nested),
        names: checkList(checkName, 9),
      },
      { required: ["id"], rules: [exclude("at", "delay")] },
    ),
  );
  expect(error.code).toBe("INVALID_OPTION");
  expect(error.message).toBe(
    [
      "The options of thing have 7 problems:",
      '- There is no option "atempts" of thing. Did you mean "attempts"?',
      '- The option "mode" of thing must be "a" or "b".',
      '- The option "inner.count" of thing must be from 1 to 2.',
      '- There is no option "inner.cuont" of thing. Did you mean "inner.count"?',
      '- The option "names.1" of thing must not be empty.',
      '- The option "id" of thing must be given.',
      '- The option "at" of thing cannot be given together with "delay".',
    ].join("\n"),
  );
  expect(error.details).toMatchObject({
    what: "thing",
    problems: [
      { option: "atempts", closest: "attempts" },
      { option: "mode" },
      { option: "inner.count" },
      { option: "inner.cuont", closest: "inner.count" },
      { option: "names.1" },
      { option: "id" },
      { option: "at" },
    ],
  });
});

test("a single problem is told in one sentence", () => {
  const error = refusal(() => checkOptions("thing", { attempts: 11 }, checks));
  expect(error.message).toBe('The option "attempts" of thing must be from 1 to 10.');
  expect(error.details["problems"]).toEqual([{ option: "attempts", message: error.message }]);
});

test("what was checked is a copy without what was not given", () => {
  let reads = 0;
  const options = {
    get attempts() {
      reads += 1;
      return reads === 1 ? 5 : Number.NaN;
    },
    timeout: undefined,
  };
  expect(checkOptions("thing", options, checks)).toEqual({ attempts: 5 });
  expect(Object.keys(checkOptions("thing", { timeout: undefined }, checks))).toEqual([]);
});

const revoked = Proxy.revocable({}, {});
revoked.revoke();

test.each<[string, unknown]>([
  ["a __proto__ of its own", JSON.parse('{"__proto__": {"attempts": 3}}')],
  ["a constructor of its own", JSON.parse('{"constructor": {"prototype": {"polluted": true}}}')],
  ["an array", [1]],
  [
    "an instance",
    new (class Options {
      readonly attempts = 1;
    })(),
  ],
  ["a map", new Map([["attempts", 1]])],
  ["a date", new Date()],
  ["what it inherits", Object.create({ attempts: 3 })],
  ["a function", () => {}],
  ["a number", 3],
  ["a symbol", Symbol("options")],
  ["a revoked proxy", revoked.proxy],
  [
    "a getter that throws",
    {
      get attempts() {
        throw new TypeError("hands off");
      },
    },
  ],
  [
    "keys that throw",
    new Proxy(
      {},
      {
        ownKeys() {
          throw new TypeError("hands off");
        },
      },
    ),
  ],
  ["a value that throws at a look", { names: revoked.proxy }],
  ["a very long name", { ["x".repeat(1_000_000)]: 1 }],
  ["very many names", Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`o${index}`, 1]))],
])("options from anywhere are refused without harm: %s", (_name, options) => {
  const error = refusal(() =>
    checkOptions("thing", options as object, { ...checks, names: checkList(checkName, 9) }),
  );
  expect(error.code).toBe("INVALID_OPTION");
  expect(error.message.length).toBeLessThan(4_000);
  expect(({} as Record<string, unknown>)["attempts"]).toBeUndefined();
  expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
});

test("a workflow's error names all that is wrong with it, its function too", () => {
  const options = {
    nane: "a",
    version: "1",
    retry: { attemps: 1, delays: [], initial: 5 },
    signals: { good: {}, "": 3 },
  };
  const { details } = refusal(() => workflow(options as never, undefined as never));
  expect((details["problems"] as { readonly option: string }[]).map(({ option }) => option)).toEqual([
    "nane",
    "version",
    "retry.attemps",
    "retry.delays",
    "signals.good",
    "signals",
    "name",
    "call",
  ]);
});
