import fc from "fast-check";
import { expect, test } from "vitest";
import { familyOfTimer, requestKey, sleepName, waitName } from "../../src/core/request-key.ts";

/** Scopes within scopes, each the first or a later one of its name. */
function keyOf(scopes: readonly (readonly [string, number])[], name: string, occurrence: number): string {
  let path = "";
  for (const [scope, times] of scopes) path = requestKey(path, scope, times);
  return requestKey(path, name, occurrence);
}

const named = fc.string({ unit: fc.constantFrom("a", "/", "#", "\\", "2"), minLength: 1 });

test("a request reads as its name, with scope and occurrence where there are any", () => {
  expect(requestKey("", "charge", 1)).toBe("charge");
  expect(requestKey("", "charge", 2)).toBe("charge#2");
  expect(requestKey("orders#2/7", "charge", 3)).toBe("orders#2/7/charge#3");
  expect(requestKey("", "and/or #1", 1)).toBe(String.raw`and\/or \#1`);
});

test("different requests have different keys", () => {
  const request = fc.tuple(
    fc.array(fc.tuple(named, fc.integer({ min: 1, max: 3 })), { maxLength: 3 }),
    named,
    fc.integer({ min: 1, max: 3 }),
  );
  fc.assert(
    fc.property(request, request, (one, other) => {
      const isSame = JSON.stringify(one) === JSON.stringify(other);
      expect(keyOf(...one) === keyOf(...other)).toBe(isSame);
    }),
    { numRuns: 2_000 },
  );
});

test("a timer's key tells a sleep from a wait, whatever scopes and signals are called", () => {
  const names = fc.string({ unit: fc.constantFrom("sleep", "signal:", "/", "#", "\\", "x") });
  fc.assert(
    fc.property(
      fc.array(fc.tuple(names, fc.integer({ min: 1, max: 3 })), { maxLength: 3 }),
      names,
      fc.integer({ min: 1, max: 3 }),
      (scope, signal, occurrence) => {
        expect(familyOfTimer(keyOf(scope, sleepName, occurrence))).toBe("sleep");
        expect(familyOfTimer(keyOf(scope, waitName(signal), occurrence))).toBe("wait");
      },
    ),
    { numRuns: 2_000 },
  );
});
