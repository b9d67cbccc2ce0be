import { expect, test } from "vitest";
import { classifyFailure } from "../../src/postgres/sql-error.ts";

function serverError(code: string, routine: string): Error {
  return Object.assign(new Error("refused"), { code, routine });
}

test("a full queue of notifications passes, a value that is too large does not", () => {
  expect(classifyFailure(serverError("54000", "PreCommit_Notify"))).toBe("unavailable");
  expect(classifyFailure(serverError("54000", "checkStringLen"))).toBe("item");
});

test("a refused login may pass, a missing function does not", () => {
  expect(classifyFailure(serverError("28P01", "auth_failed"))).toBe("unavailable");
  expect(classifyFailure(serverError("42883", "ParseFuncOrColumn"))).toBe("final");
});

test("an error without a code of the server's is no answer", () => {
  expect(classifyFailure(new Error("Connection terminated"))).toBe("unavailable");
});
