import { fc } from "pawl-test-support/fast-check";
import { expect, test } from "vitest";
import {
  familyOfTimer,
  isPublishedWithStep,
  publishedKey,
  publishedWith,
  outermostScope,
  requestKey,
  sleepName,
  waitName,
} from "../../src/core/request-key.ts";

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

test("what a step publishes is told from what the code asks for, and by its key, whatever they are called", () => {
  const scopes = fc.array(fc.tuple(named, fc.integer({ min: 1, max: 3 })), { maxLength: 3 });
  fc.assert(
    fc.property(scopes, named, fc.integer({ min: 1, max: 3 }), named, (path, name, occurrence, key) => {
      const step = keyOf(path, name, occurrence);
      expect(isPublishedWithStep(step)).toBe(false);
      expect(isPublishedWithStep(publishedWith(step, key))).toBe(true);
      expect(publishedKey(publishedWith(step, key))).toBe(key);
    }),
    { numRuns: 1_000 },
  );
});

test("a request's key tells the outermost scope that it is in, whatever that is called", () => {
  const scopes = fc.array(fc.tuple(named, fc.integer({ min: 1, max: 3 })), { maxLength: 3 });
  fc.assert(
    fc.property(scopes, named, fc.integer({ min: 1, max: 3 }), (scope, name, occurrence) => {
      expect(outermostScope(keyOf(scope, name, occurrence))).toBe(scope[0]?.[0] ?? null);
    }),
    { numRuns: 2_000 },
  );
});
