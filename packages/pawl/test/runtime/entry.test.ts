import { expect, test } from "vitest";
import type { RunEvent } from "../../src/core/event.ts";
import { asRecorded, createEntry } from "../../src/runtime/entry.ts";
import type { NewEvent } from "../../src/store/lease.ts";

const lease = { runId: "019b76da-0000-7000-8000-000000000001", epoch: 1, workerId: "w" };
const event = { seq: 3, kind: "step_completed", name: "buy", data: null } as const;

test.for([true, false])(
  "whoever looks for a lost COMMIT (there: %s) hears what else there is to know",
  async (isThere) => {
    const learnt: unknown[] = [];
    const arrived: RunEvent[] = [];
    const history: NewEvent[] = isThere ? [event] : [];
    const entry = createEntry({
      lease,
      event,
      record(marker) {
        if (history.length === 0) history.push(marker);
        return Promise.resolve({ told: true, now: 7 });
      },
      load: () =>
        Promise.resolve(history.map((each) => asRecorded(each, { told: true, now: 7, dueAt: new Map() }))),
      learn: (answer) => learnt.push(answer),
      arrived: (recorded) => arrived.push(recorded),
      ended: () => {},
    });
    expect(await entry.findOut()).toBe(isThere);
    expect(arrived.map(({ kind }) => kind)).toEqual(isThere ? ["step_completed"] : []);
    expect(learnt).toEqual([{ told: true, now: 7 }]);
  },
);
