import { expect, test } from "vitest";
import type { RunEvent } from "../../src/core/event.ts";
import { asRecorded, createEntry } from "../../src/runtime/entry.ts";
import type { NewEvent } from "../../src/store/lease.ts";

const lease = { runId: "019b76da-0000-7000-8000-000000000001", epoch: 1, workerId: "w" };
const patch = { seq: 3, kind: "patched", name: "euro", data: null } as const;
const fact = (seq: number) => ({ seq, kind: "step_completed", name: "buy", data: null }) as const;

test.for([
  { isThere: true, facts: { patches: [], fact: fact(3) } },
  { isThere: false, facts: { patches: [], fact: fact(3) } },
  { isThere: true, facts: { patches: [patch], fact: fact(4) } },
  { isThere: false, facts: { patches: [patch], fact: fact(4) } },
])("whoever looks for a lost COMMIT hears what else there is to know: %o", async ({ isThere, facts }) => {
  const learnt: unknown[] = [];
  const arrived: RunEvent[] = [];
  const ends: unknown[] = [];
  const all = [...facts.patches, facts.fact];
  const history: NewEvent[] = isThere ? [...all] : [];
  const entry = createEntry({
    lease,
    facts,
    record(marker) {
      if (history.length === 0) history.push(marker);
      return Promise.resolve({ told: true, now: 7 });
    },
    load: () =>
      Promise.resolve(history.map((each) => asRecorded(each, { told: true, now: 7, dueAt: new Map() }))),
    learn: (answer) => learnt.push(answer),
    arrived: (recorded) => arrived.push(...recorded),
    ended: (newest) => ends.push(newest),
  });
  expect(await entry.findOut()).toBe(isThere);
  expect(arrived.map(({ kind }) => kind)).toEqual(isThere ? all.map(({ kind }) => kind) : []);
  expect(history.map(({ seq, kind }) => [seq, kind])).toEqual(
    isThere ? all.map(({ seq, kind }) => [seq, kind]) : [[3, "commit_lost"]],
  );
  expect(learnt).toEqual([{ told: true, now: 7 }]);
  expect(ends).toEqual([isThere ? facts.fact.seq : 3]);
});
