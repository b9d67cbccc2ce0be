import { createDatabase, dropDatabase, type TestDatabase } from "pawl-test-support";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { column, sparseColumn } from "../../src/postgres/columns.ts";

let database: TestDatabase;
let client: pg.Client;
beforeAll(async () => {
  database = await createDatabase();
  client = new pg.Client(database.url);
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await dropDatabase(database);
});

async function read(type: string, parameter: unknown): Promise<unknown> {
  const { rows } = await client.query<{ values: unknown }>(`select $1::${type}[] as values`, [parameter]);
  return rows[0]?.values;
}

const texts = [
  "",
  "plain",
  "null",
  "NULL",
  '"quoted"',
  "back\\slash",
  "\\n written out",
  "a line\nand another\r\n",
  "\ttab",
  "{braces,and,commas}",
  "[1, 2]",
  " spaces around ",
  "é ß 漢字 😀",
  "\u2028 and \u007f and \u0001",
  JSON.stringify({ text: 'with "quotes" and \\ and \n', list: [null, 1.5, true] }),
  JSON.stringify({ pretty: ["printed"] }, null, 2),
];

test("every text arrives as it is, alone and among others", async () => {
  expect(
    await read(
      "text",
      column(texts, (text) => text),
    ),
  ).toEqual(texts);
  for (const text of texts)
    expect(
      await read(
        "text",
        column([text], (each) => each),
      ),
    ).toEqual([text]);
});

test("texts that most items lack keep their places", async () => {
  const sparse = texts.flatMap((text) => [undefined, text, null]);
  expect(
    await read(
      "text",
      sparseColumn(sparse, (text) => text),
    ),
  ).toEqual(sparse.map((text) => text ?? null));
  expect(sparseColumn([null, undefined], (text) => text)).toBeNull();
});

test("numbers, flags and ids arrive as they are", async () => {
  const numbers = [0, -1, 1.5, 1e21, 5e-324, Number.MAX_SAFE_INTEGER, Infinity, -Infinity];
  expect(
    await read(
      "float8",
      column(numbers, (number) => number),
    ),
  ).toEqual(numbers);
  expect(
    await read(
      "float8",
      column(numbers.slice(0, 6), (number) => number),
    ),
  ).toEqual(numbers.slice(0, 6));
  expect(
    await read(
      "int4",
      sparseColumn([1, null, 3], (number) => number),
    ),
  ).toEqual([1, null, 3]);
  expect(
    await read(
      "boolean",
      column([true, false], (flag) => flag),
    ),
  ).toEqual([true, false]);
  const id = "019b76da-a827-72e0-800d-1a7c4c4da078";
  expect(
    await read(
      "uuid",
      column([id, id], (each) => each),
    ),
  ).toEqual([id, id]);
});

test("half a character is replaced as the driver does it", async () => {
  expect(
    await read(
      "text",
      column(["\ud800", "b"], (text) => text),
    ),
  ).toEqual(["\ufffd", "b"]);
});
