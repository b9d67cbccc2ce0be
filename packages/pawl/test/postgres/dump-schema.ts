import type pg from "pg";
import type { SchemaName } from "../../src/postgres/schema-name.ts";

/**
 * Everything in a schema as SQL that makes it again, in an order that depends on nothing but names. Read from the
 * catalogs: `pg_dump` is not everywhere, and its text differs from version to version.
 */
export async function dumpSchema(pool: pg.Pool, schema: SchemaName): Promise<string> {
  const parts: string[] = [`create schema ${schema.quoted};`];
  for (const query of [
    domains,
    types,
    tables,
    functionsIn("others"),
    indexes,
    views,
    functionsIn("nothing"),
  ]) {
    const { rows } = await pool.query<{ sql: string }>(query, [schema.name]);
    parts.push(...rows.map(({ sql }) => `${withoutOnlyName(sql.trim())};`));
  }
  return `${parts.join("\n\n")}\n`;
}

/** Since version 16 the server leaves out the name of a view's only table before its columns. */
function withoutOnlyName(sql: string): string {
  const name = /^create view .*\n +FROM \S+ (\w+)(?:\n +WHERE [^\n]+)?$/s.exec(sql)?.[1];
  return name === undefined || sql.includes("UNION ALL")
    ? sql
    : sql.replaceAll(new RegExp(`\\b${name}\\.`, "g"), "");
}

const column = `'  ' || rpad(a.attname, 16) || format_type(a.atttypid, a.atttypmod)
  || case when a.attcollation <> 0 and a.attcollation <> t.typcollation then ' collate ' || quote_ident(c.collname) else '' end
  || case when a.attgenerated = 's' then ' generated always as (' || pg_get_expr(d.adbin, d.adrelid) || ') stored'
          when d.adbin is not null then ' default ' || pg_get_expr(d.adbin, d.adrelid) else '' end
  || case when a.attnotnull then ' not null' else '' end`;

const columnsOf = (relation: string): string => `
  select string_agg(${column}, E',\\n' order by a.attnum)
    from pg_attribute a
    join pg_type t on t.oid = a.atttypid
    left join pg_collation c on c.oid = a.attcollation
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
   where a.attrelid = ${relation} and a.attnum > 0 and not a.attisdropped`;

const domains = `
  select format('create domain %I.%I as %s', n.nspname, t.typname, format_type(t.typbasetype, t.typtypmod))
         || (select string_agg(' constraint ' || quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid), ''
                      order by k.conname collate "C")
               from pg_constraint k
              where k.contypid = t.oid) as sql
    from pg_type t join pg_namespace n on n.oid = t.typnamespace
   where n.nspname = $1 and t.typtype = 'd'
   order by t.typname collate "C"`;

const types = `
  select format(E'create type %I.%I as (\\n%s\\n)', n.nspname, r.relname, (${columnsOf("r.oid")})) as sql
    from pg_class r join pg_namespace n on n.oid = r.relnamespace
   where n.nspname = $1 and r.relkind = 'c'
   order by r.relname collate "C"`;

/** Version 18 also has a constraint for each column that may not be null: the column says so already. */
const constraints = `
  select string_agg(E',\\n  constraint ' || quote_ident(k.conname) || ' ' || pg_get_constraintdef(k.oid), ''
           order by k.contype <> 'p', k.conname collate "C")
    from pg_constraint k
   where k.conrelid = r.oid and k.contype <> 'n'`;

const tables = `
  select format(E'create table %I.%I (\\n%s%s\\n)', n.nspname, r.relname, (${columnsOf("r.oid")}), (${constraints}))
         || coalesce(' with (' || array_to_string(r.reloptions, ', ') || ')', '') as sql
    from pg_class r join pg_namespace n on n.oid = r.relnamespace
   where n.nspname = $1 and r.relkind = 'r'
   order by r.relname collate "C"`;

const indexes = `
  select pg_get_indexdef(i.indexrelid) as sql
    from pg_index i
    join pg_class r on r.oid = i.indexrelid
    join pg_namespace n on n.oid = r.relnamespace
   where n.nspname = $1 and not exists (select 1 from pg_constraint k where k.conindid = i.indexrelid)
   order by r.relname collate "C"`;

const views = `
  select format(E'create view %I.%I as\\n%s', n.nspname, r.relname, rtrim(pg_get_viewdef(r.oid), ';')) as sql
    from pg_class r join pg_namespace n on n.oid = r.relnamespace
   where n.nspname = $1 and r.relkind = 'v'
   order by r.relname collate "C"`;

/** Those that indexes and views call come before them; others may answer rows of a view, and come after. */
const functionsIn = (users: "others" | "nothing"): string => `
  select replace(pg_get_functiondef(p.oid), 'CREATE OR REPLACE FUNCTION', 'create function') as sql
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
   where n.nspname = $1
     and ${users === "others" ? "" : "not "}exists (select 1 from pg_depend d
                  where d.refobjid = p.oid and d.refclassid = 'pg_proc'::regclass and d.classid in ('pg_rewrite'::regclass, 'pg_class'::regclass))
   order by p.proname collate "C", pg_get_function_identity_arguments(p.oid)`;
