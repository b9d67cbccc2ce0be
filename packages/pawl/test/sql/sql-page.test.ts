import { test } from "pawl-test-support";
import { describe, expect } from "vitest";
import type { EventKind } from "../../src/core/event.ts";
import { createPawl } from "../../src/index.ts";
import { parts, section, tableRows } from "./sql-page.ts";

const name = (cell: string): string => cell.replaceAll("`", "");

describe("docs/sql.md", () => {
  test("names every column of every view, in order, with its type", async ({ pool, schema }) => {
    await using pawl = createPawl({ pool, schema });
    await pawl.migrate();
    const { rows } = await pool.query<{ view: string; columns: string[] }>(
      `select c.relname as view, array_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod) order by a.attnum) as columns
         from pg_class c join pg_attribute a on a.attrelid = c.oid
        where c.relnamespace = $1::regnamespace and c.relkind = 'v' and a.attnum > 0
        group by c.relname`,
      [schema],
    );
    const documented = [...parts("## Views")].map(([title, text]) => [
      name(title),
      tableRows(text).map(([column, type]) => `${name(column!)} ${name(type!)}`),
    ]);
    const short = (column: string): string => column.replace("timestamp with time zone", "timestamptz");
    expect(Object.fromEntries(documented)).toEqual(
      Object.fromEntries(rows.map(({ view, columns }) => [view, columns.map(short)])),
    );
  });

  test("explains every column", () => {
    for (const [view, text] of parts("## Views"))
      for (const [column, , says] of tableRows(text)) expect(says, `${view} ${column}`).not.toBe("");
  });

  test("names the functions that are there, with their arguments", async ({ pool, schema }) => {
    await using pawl = createPawl({ pool, schema });
    await pawl.migrate();
    const { rows } = await pool.query<{ function: string }>(
      `select 'pawl.' || proname || '(' || pg_get_function_identity_arguments(oid) || ')' as function
         from pg_proc where pronamespace = $1::regnamespace and proname !~ '_v[0-9]+$' and proname not in ('start', 'signal', 'signal_or_start', 'cancel')`,
      [schema],
    );
    const [functions] = section("## Functions").split("\n`pawl.start`");
    const documented = tableRows(functions!).map(([cell]) => name(cell!));
    const short = rows.map((row) => row.function.replace("timestamp with time zone", "timestamptz"));
    expect(documented.toSorted()).toEqual(short.toSorted());
  });

  test("names every kind of event, and no other", () => {
    const kinds: Readonly<Record<EventKind, true>> = {
      step_intended: true,
      step_completed: true,
      step_failed: true,
      step_retried: true,
      step_progressed: true,
      commit_lost: true,
      timer_set: true,
      timer_fired: true,
      signal_received: true,
      child_started: true,
      child_ended: true,
      withdrawn: true,
      patched: true,
      published: true,
      update_received: true,
      update_answered: true,
      stream_written: true,
      cancel_requested: true,
      paused: true,
      resumed: true,
      blocked: true,
      attempt_failed: true,
      attempt_crashed: true,
      input_parsed: true,
      rescheduled: true,
      undo_began: true,
      undo_retried: true,
      undo_completed: true,
      undo_failed: true,
      forked: true,
      redriven: true,
      continued: true,
      completed: true,
      failed: true,
      cancelled: true,
      timed_out: true,
      expired: true,
    };
    const documented = tableRows(section("## Kinds of events")).map(([kind]) => name(kind!));
    expect(documented.toSorted()).toEqual(Object.keys(kinds).toSorted());
  });

  test("answers for other systems with columns that exist", () => {
    const views = new Map(
      [...parts("## Views")].map(([title, text]) => [
        name(title),
        new Set(tableRows(text).map(([column]) => name(column!))),
      ]),
    );
    const answers = [...parts("## Where other systems' columns are").values()].flatMap(tableRows);
    expect(answers.length).toBeGreaterThan(150);
    for (const [column, answer] of answers) {
      expect(answer, `the answer to ${column}`).not.toBe("");
      for (const [, view, asked] of answer!.matchAll(/`[^`]*?\b([a-z_]+)\.([a-z_]+)\b[^`]*`/g)) {
        if (view === "pawl" || view === "worker_sample") continue;
        expect(views.get(view!)?.has(asked!), `${view}.${asked}, the answer to ${column}`).toBe(true);
      }
    }
  });
});
