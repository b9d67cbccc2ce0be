import { describe, expect, test } from "vitest";
import { createGroupCommit, type GroupCommitOptions } from "../../src/postgres/group-commit.ts";

interface Call {
  readonly items: readonly string[];
  readonly answer: () => void;
  readonly fail: (sqlState: string | null) => void;
}

/** A server that carries out nothing until it is told to, and answers each item with itself. */
function createServer() {
  const calls: Call[] = [];
  const send = (items: readonly string[]): Promise<readonly string[]> =>
    new Promise((resolve, reject) => {
      calls.push({
        items,
        answer: () => resolve(items.map((item) => `done ${item}`)),
        fail: (sqlState) =>
          reject(Object.assign(new Error("no"), sqlState === null ? {} : { code: sqlState })),
      });
    });
  return { calls, send };
}

/** A server that answers at once, and knows bad items by their name. */
function createPickyServer(isBad: (item: string) => string | null) {
  const calls: (readonly string[])[] = [];
  let out = 0;
  let mostOut = 0;
  const send = async (items: readonly string[]): Promise<readonly string[]> => {
    calls.push(items);
    mostOut = Math.max(mostOut, ++out);
    await settle();
    out--;
    for (const item of items) {
      const sqlState = isBad(item);
      if (sqlState !== null) throw Object.assign(new Error(`bad: ${item}`), { code: sqlState });
    }
    return items.map((item) => `done ${item}`);
  };
  return { calls, send, mostOut: () => mostOut };
}

function createCommit(
  send: GroupCommitOptions<string, string>["send"],
  more: Partial<GroupCommitOptions<string, string>> = {},
) {
  return createGroupCommit<string, string>({
    name: "record",
    send,
    sizeOf: (item) => item.length,
    maxItems: 500,
    maxBytes: 1_000_000,
    maxUnanswered: 10_000,
    blockedForMs: 5_000,
    pause: settle,
    ...more,
  });
}

/** Lets everything that can go on do so. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
}

const many = (count: number): readonly string[] => Array.from({ length: count }, (_, n) => `item ${n}`);
const blocked = "55P03";
const invalid = "22P02";

describe("merging", () => {
  test("what is asked for in one turn goes out as one call, and each caller gets its own answer", async () => {
    const server = createServer();
    const commit = createCommit(server.send);
    const answers = Promise.all(many(50).map(commit));
    await settle();
    expect(server.calls.map(({ items }) => items)).toEqual([many(50)]);
    server.calls[0]!.answer();
    expect(await answers).toEqual(many(50).map((item) => `done ${item}`));
  });

  test("what comes while a call is in flight gathers, and goes out together when it returns", async () => {
    const server = createServer();
    const commit = createCommit(server.send);
    void commit("first");
    await settle();
    for (const item of ["second", "third"]) void commit(item);
    await settle();
    expect(server.calls).toHaveLength(1);
    server.calls[0]!.answer();
    await settle();
    expect(server.calls.map(({ items }) => items)).toEqual([["first"], ["second", "third"]]);
  });

  test("a call that comes alone goes out in the same turn of the loop, without a timer", async () => {
    const server = createServer();
    const commit = createCommit(server.send);
    void commit("alone");
    await new Promise((resolve) => setImmediate(resolve));
    expect(server.calls).toHaveLength(1);
  });

  test("many items share out over two calls, and each half goes on without the other", async () => {
    const server = createServer();
    const commit = createCommit(server.send, { halves: "calls" });
    const answers = Promise.all(many(50).map(commit));
    await settle();
    expect(server.calls.map(({ items }) => items)).toEqual([many(50).slice(0, 25), many(50).slice(25)]);
    server.calls[1]!.answer();
    await settle();
    const more = Promise.all(many(30).map(commit));
    await settle();
    expect(server.calls.map(({ items }) => items.length)).toEqual([25, 25, 30]);
    for (const index of [0, 2]) server.calls[index]!.answer();
    expect(await answers).toEqual(many(50).map((item) => `done ${item}`));
    expect(await more).toHaveLength(30);
  });

  test("few items stay together, and wait for a call that carries more", async () => {
    const server = createServer();
    const commit = createCommit(server.send, { halves: "calls" });
    for (const item of many(7)) void commit(item);
    await settle();
    expect(server.calls.map(({ items }) => items.length)).toEqual([7]);
    for (const item of many(7)) void commit(item);
    await settle();
    expect(server.calls).toHaveLength(1);
    void commit("one more");
    await settle();
    expect(server.calls.map(({ items }) => items.length)).toEqual([7, 8]);
    void commit("a third");
    await settle();
    expect(server.calls).toHaveLength(2);
    server.calls[0]!.answer();
    await settle();
    // Eight are out: it goes when they are back.
    expect(server.calls).toHaveLength(2);
    server.calls[1]!.answer();
    await settle();
    expect(server.calls.map(({ items }) => items.length)).toEqual([7, 8, 1]);
  });

  describe("where answers are given in waves,", () => {
    /** Asks again for each item when it has been answered. */
    const askTwice = (commit: (item: string) => Promise<string>, items: readonly string[]) =>
      items.map((item) => commit(item).then(() => commit(`${item} again`)));
    const sizes = (calls: readonly Call[]) => calls.map(({ items }) => items.length);

    test("the second half is answered when what the first one asks for then has been sent", async () => {
      const server = createServer();
      const commit = createCommit(server.send, { halves: "waves" });
      const answers = Promise.all(askTwice(commit, many(200)));
      await settle();
      expect(sizes(server.calls)).toEqual([200]);
      server.calls[0]!.answer();
      await settle();
      expect(sizes(server.calls)).toEqual([200, 100, 100]);
      expect(server.calls[1]!.items).toEqual(many(100).map((item) => `${item} again`));
      for (const index of [1, 2]) server.calls[index]!.answer();
      expect(await answers).toEqual(many(200).map((item) => `done ${item} again`));
    });

    test("a call's answers wait while those of another have not led to a call yet", async () => {
      const server = createServer();
      const commit = createCommit(server.send, { halves: "waves" });
      const answers = Promise.all(askTwice(commit, many(200)));
      await settle();
      server.calls[0]!.answer();
      await settle();
      const third = many(100).map((item) => commit(`third ${item}`));
      for (const index of [1, 2]) server.calls[index]!.answer();
      await answers;
      await settle();
      server.calls[3]!.answer();
      await Promise.all(third);
      expect(sizes(server.calls)).toEqual([200, 100, 100, 100]);
    });

    test("the second half is answered soon where the first asks for nothing", async () => {
      const server = createServer();
      const commit = createCommit(server.send, { halves: "waves" });
      let answered = 0;
      const answers = many(200).map((item) => commit(item).then(() => (answered += 1)));
      await settle();
      server.calls[0]!.answer();
      await new Promise((resolve) => setImmediate(resolve));
      expect(answered).toBe(100);
      await Promise.all(answers);
      expect(answered).toBe(200);
    });

    test("few are answered together", async () => {
      const server = createServer();
      const commit = createCommit(server.send, { halves: "waves" });
      const answers = Promise.all(askTwice(commit, many(100)));
      await settle();
      server.calls[0]!.answer();
      await settle();
      expect(sizes(server.calls)).toEqual([100, 100]);
      server.calls[1]!.answer();
      expect(await answers).toHaveLength(100);
    });
  });

  test("a call holds no more than so many items", async () => {
    const server = createPickyServer(() => null);
    const commit = createCommit(server.send, { maxItems: 20 });
    await Promise.all(many(50).map(commit));
    expect(server.calls.map((items) => items.length)).toEqual([20, 20, 10]);
  });

  test("a call holds no more than so many bytes, unless one item is bigger by itself", async () => {
    const server = createPickyServer(() => null);
    const commit = createCommit(server.send, { maxBytes: 10 });
    await Promise.all(["aaaa", "bbbb", "cccc", "d".repeat(50), "eeee"].map(commit));
    expect(server.calls).toEqual([["aaaa", "bbbb"], ["cccc"], ["d".repeat(50)], ["eeee"]]);
  });
});

describe("items that belong together", () => {
  /** "a1/3" is one of three of a. */
  const groupOf = (item: string) => {
    const [, id, size] = /^([a-z])\d\/(\d)$/.exec(item) ?? [];
    return id === undefined ? undefined : { id, size: Number(size) };
  };

  test("wait for each other while a call of others goes out, and for one only", async () => {
    const { calls, send } = createServer();
    const commit = createCommit(send, { groupOf });
    const sent = ["x", "a1/3", "a2/3"].map((item) => commit(item));
    await settle();
    expect(calls.map(({ items }) => items)).toEqual([["x"]]);
    const more = ["y", "a3/3", "b1/2"].map((item) => commit(item));
    calls[0]?.answer();
    await settle();
    expect(calls[1]?.items).toEqual(["a1/3", "a2/3", "y", "a3/3"]);
    const last = commit("z");
    calls[1]?.answer();
    await settle();
    expect(calls[2]?.items).toEqual(["b1/2", "z"]);
    calls[2]?.answer();
    await Promise.all([...sent, ...more, last]);
  });

  test("do not wait where there is nothing else to send", async () => {
    const { calls, send } = createServer();
    const commit = createCommit(send, { groupOf });
    const sent = ["a1/3", "a2/3"].map((item) => commit(item));
    await settle();
    expect(calls.map(({ items }) => items)).toEqual([["a1/3", "a2/3"]]);
    calls[0]?.answer();
    await Promise.all(sent);
  });

  test("are not parted by the end of a full call", async () => {
    const { calls, send } = createServer();
    const commit = createCommit(send, { groupOf, maxItems: 10 });
    const plain = Array.from({ length: 9 }, (_, index) => `${index}`);
    const sent = [...plain, "a1/2", "a2/2"].map((item) => commit(item));
    await settle();
    expect(calls[0]?.items).toEqual(plain);
    calls[0]?.answer();
    await settle();
    expect(calls[1]?.items).toEqual(["a1/2", "a2/2"]);
    calls[1]?.answer();
    await Promise.all(sent);
  });
});

describe("back-pressure", () => {
  test("no more than so many items are taken in before earlier ones are answered, and callers are let in by turns", async () => {
    const server = createServer();
    const commit = createCommit(server.send, { maxUnanswered: 3 });
    const answered: string[] = [];
    for (const item of many(8)) void commit(item).then((answer) => answered.push(answer));
    for (let call = 0; call < 3; call++) {
      await settle();
      expect(server.calls[call]!.items.length).toBeLessThanOrEqual(3);
      server.calls[call]!.answer();
    }
    await settle();
    expect(answered).toEqual(many(8).map((item) => `done ${item}`));
  });

  test("items that are being tried again count too", async () => {
    const server = createPickyServer((item) => (item === "item 0" ? blocked : null));
    let isPassing = false;
    const commit = createCommit(server.send, {
      maxUnanswered: 2,
      pause: async () => {
        while (!isPassing) await settle();
      },
    });
    const first = commit("item 0");
    void first.catch(() => {});
    await settle();
    const others = Promise.all(["item 1", "item 2", "item 3"].map(commit));
    await expect(others).resolves.toHaveLength(3);
    expect(Math.max(...server.calls.map((items) => items.length))).toBe(1);
    isPassing = true;
    await expect(first).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
  });
});

describe("an item that cannot be carried out", () => {
  test("fails alone, and the others of its call succeed", async () => {
    const server = createPickyServer((item) => (item === "item 77" ? invalid : null));
    const commit = createCommit(server.send);
    const outcomes = await Promise.allSettled(many(400).map(commit));
    expect(outcomes.filter(({ status }) => status === "rejected")).toHaveLength(1);
    expect(outcomes[77]).toMatchObject({ status: "rejected", reason: { code: "DATABASE" } });
    expect(outcomes[78]).toMatchObject({ value: "done item 78" });
  });

  test("costs some tens of calls, not one for each of the others", async () => {
    const server = createPickyServer((item) => (item === "item 77" ? invalid : null));
    await Promise.allSettled(many(400).map(createCommit(server.send)));
    expect(server.calls.length).toBeLessThanOrEqual(1 + 20 + 20);
  });

  test("does not open a flood of calls, however many there are of them", async () => {
    const server = createPickyServer(() => invalid);
    const outcomes = await Promise.allSettled(many(400).map(createCommit(server.send)));
    expect(outcomes.every(({ status }) => status === "rejected")).toBe(true);
    expect(server.mostOut()).toBeLessThanOrEqual(5);
  });
});

describe("an item that somebody blocks", () => {
  test("is tried again until it passes", async () => {
    let isHeld = true;
    const server = createPickyServer((item) => (isHeld && item === "item 1" ? blocked : null));
    const outcome = createCommit(server.send)("item 1");
    await settle();
    isHeld = false;
    await expect(outcome).resolves.toBe("done item 1");
  });

  test("holds the others of its call once, and those in its part twice", async () => {
    const server = createServer();
    const commit = createCommit(server.send);
    const answered = new Set<string>();
    for (const item of many(100))
      void commit(item).then(
        () => answered.add(item),
        () => {},
      );
    await settle();
    const carryOut = ({ items, answer, fail }: Call): void =>
      items.includes("item 5") ? fail(blocked) : answer();
    carryOut(server.calls[0]!);
    await settle();
    const parts = server.calls.slice(1);
    expect(parts.every(({ items }) => items.length === 10)).toBe(true);
    for (let done = 1; done < 11; done++) {
      await settle();
      carryOut(server.calls[done]!);
    }
    await settle();
    expect(answered.size).toBe(90);
    for (let done = 11; done < 21; done++) {
      await settle();
      carryOut(server.calls[done]!);
    }
    await settle();
    expect(answered.size).toBe(99);
  });

  test("does not hold the calls that come after", async () => {
    const server = createPickyServer((item) => (item === "item 0" ? blocked : null));
    const commit = createCommit(server.send, { pause: () => new Promise(() => {}) });
    void commit("item 0").catch(() => {});
    await settle();
    await expect(commit("item 1")).resolves.toBe("done item 1");
  });

  test("is given up in the end, as something that may pass later", async () => {
    const server = createPickyServer(() => blocked);
    await expect(createCommit(server.send)("item 0")).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    expect(server.calls.length).toBeGreaterThan(10);
  });

  test("waits in a line that does not hold up other items of its call", async () => {
    const server = createPickyServer((item) => (Number(item.slice(5)) < 20 ? blocked : null));
    const commit = createCommit(server.send, { pause: () => new Promise(() => {}) });
    for (const item of many(20)) void commit(item);
    await expect(Promise.all(many(60).slice(20).map(commit))).resolves.toHaveLength(40);
  });
});

describe("a call without an answer", () => {
  test("rejects all of its items as unavailable, since it may have been carried out", async () => {
    const server = createServer();
    const outcomes = Promise.allSettled(many(3).map(createCommit(server.send)));
    await settle();
    server.calls[0]!.fail(null);
    for (const outcome of await outcomes)
      expect(outcome).toMatchObject({ reason: { code: "STORE_UNAVAILABLE" } });
    expect(server.calls).toHaveLength(1);
  });

  test("that the system broke is not mistaken for one that the server refused", async () => {
    const send = (): Promise<never> =>
      Promise.reject(Object.assign(new Error("write EPIPE"), { code: "EPIPE", syscall: "write" }));
    await expect(createCommit(send)("item")).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
  });

  test("does not keep the next from going out", async () => {
    const server = createServer();
    const commit = createCommit(server.send);
    const lost = commit("lost");
    await settle();
    const next = commit("next");
    server.calls[0]!.fail(null);
    await expect(lost).rejects.toMatchObject({ code: "STORE_UNAVAILABLE" });
    await settle();
    server.calls[1]!.answer();
    await expect(next).resolves.toBe("done next");
  });

  test("or with too few answers is our mistake, and gives no caller another's answer", async () => {
    const commit = createCommit(async (items) => items.slice(1));
    const outcomes = await Promise.allSettled(many(2).map(commit));
    for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: { code: "INTERNAL" } });
  });
});

test("a statement that the server refuses for good is not tried again", async () => {
  const server = createPickyServer(() => "42P01");
  await expect(createCommit(server.send)("item")).rejects.toMatchObject({ code: "SCHEMA_MISSING" });
  expect(server.calls).toHaveLength(1);
});
