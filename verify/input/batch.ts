import { setTimeout as pause } from "node:timers/promises";
import {
  aesGcmCodec,
  createPawl,
  PawlError,
  type Log,
  type Pawl,
  type PawlOptions,
  type Run,
} from "../../packages/pawl/src/index.ts";
import { carrying } from "../../packages/pawl/test/bad-input/carriers.ts";
import { idle } from "../../packages/pawl/test/bad-input/entries.ts";
import { differenceOf } from "../../packages/pawl/test/core/rich-value.ts";
import { Verdict, type Report, type Violation } from "../hist/verdict.ts";
import { createRng } from "../sim/rng.ts";
import { asking } from "./asking.ts";
import { anything, pickCall, type Acknowledged, type Call, type Field } from "./call.ts";
import { throwing } from "./throwing.ts";

/** Where the runs of a batch live. */
export type Place = "memory" | "postgres" | "encrypted";
export const places: readonly Place[] = ["postgres", "memory", "encrypted"];

export interface BatchReport {
  readonly place: Place;
  readonly calls: ReadonlyMap<string, number>;
  readonly violations: readonly Violation[];
}

const callsPerBatch = 250;
const callsAtOnce = 25;
const longestEndMs = 15_000;
const noEnd = "It came to no end.";
/** Each failing call is made smaller for so long. */
const shrinkMs = 5_000;
const codec = aesGcmCodec({ keys: [{ id: "one", key: new Uint8Array(32).fill(1) }] });

/** Makes the calls that follow from the seed, which also names the place, then looks at everything that was acknowledged. */
export async function runBatch(seed: string, url: string): Promise<BatchReport> {
  const rng = createRng(seed);
  const place = places.find((each) => seed.includes(`.${each}.`)) ?? "memory";
  const calls = Array.from({ length: callsPerBatch }, () => pickCall(rng));
  const tally = new Map<string, number>();
  const verdict = new Verdict();
  const watch = watchProcess(verdict.report);
  const lines: string[] = [];
  await using pawl = createPawl(optionsAt(place, url, lines));
  const field = await prepare(pawl, place === "memory");
  const since = (await pawl.get(field.ended.id))?.createdAt ?? new Date(0);
  const worker = pawl.worker({ workflows: [...carrying, idle, asking, throwing], pollInterval: "100ms" });
  await worker.start();

  const queue = [...calls];
  const work = async (): Promise<void> => {
    for (let call = queue.pop(); call !== undefined; call = queue.pop()) {
      const outcome = await outcomeInTime(call, field);
      const key = `${call.kind}, ${isFine(outcome) ? outcome : "wrong"}`;
      tally.set(key, (tally.get(key) ?? 0) + 1);
      if (outcome === noEnd) {
        verdict.report("I17", outcome, call.label);
        // Those that follow would hardly fare better.
        queue.length = 0;
      } else if (!isFine(outcome)) await reportCall(call, outcome, field, verdict.report);
    }
  };
  await Promise.all(Array.from({ length: callsAtOnce }, work));
  await checkAcknowledged(field, verdict.report);
  await checkAll(field, since, verdict.report);
  await worker.stop({ timeout: "5s" });
  for (const line of lines) verdict.report("I19", "The engine found a mistake of its own.", line);
  await watch.stop();
  return { place, calls: tally, violations: verdict.violations };
}

async function outcomeInTime(call: Call, field: Field): Promise<string> {
  const inTime = new AbortController();
  const tooLate = pause(longestEndMs, noEnd, { signal: inTime.signal }).catch(() => noEnd);
  // A spoilt engine may throw anything.
  const outcome: unknown = await Promise.race([call.make(field), tooLate]);
  inTime.abort();
  return String(outcome);
}

function isFine(outcome: string): boolean {
  return outcome === "accepted" || outcome === "refused";
}

function optionsAt(place: Place, url: string, lines: string[]): PawlOptions {
  const options = { log: collectMistakes(lines), ...(place === "encrypted" && { codec }) };
  if (place === "memory") return { memory: true, ...options };
  return { url, schema: place, autoMigrate: true, ...options };
}

/** What no input may lead to. */
function collectMistakes(lines: string[]): Log {
  const note = (message: string, fields: Readonly<Record<string, unknown>> = {}): void => {
    const { error } = fields;
    const isOurs = PawlError.is(error, "INTERNAL") || PawlError.is(error, "DATABASE");
    if (isOurs || message.includes("bug")) lines.push(`${message} ${isOurs ? error.message : ""}`);
  };
  return { debug: () => {}, info: () => {}, warn: note, error: note };
}

async function prepare(pawl: Pawl, isMemory: boolean): Promise<Field> {
  const ended = await pawl.start(idle, 1, { queue: "nobody" });
  await ended.cancel();
  const live = await pawl.start(idle, 2, { queue: "nobody" });
  return { pawl, ended, live, isMemory, acknowledged: [] };
}

/** The smallest call that fails, of those that are near. */
async function reportCall(call: Call, outcome: string, field: Field, report: Report): Promise<void> {
  let [least, said] = [call, outcome];
  const endsAt = Date.now() + shrinkMs;
  for (let found = true; found;) {
    found = false;
    for (const less of least.smaller()) {
      if (Date.now() > endsAt) break;
      const again = await outcomeInTime(less, field);
      if (isFine(again)) continue;
      [least, said, found] = [less, again, true];
      break;
    }
  }
  report("I15", said.slice(0, 1_000), least.label, ...(least === call ? [] : [`first: ${call.label}`]));
}

async function checkAcknowledged({ pawl, acknowledged }: Field, report: Report): Promise<void> {
  await Promise.all(acknowledged.map((each) => checkRun(each, pawl, report)));
}

/** What was said of a run is what it has, to the letter. A run that had the key already keeps its own. */
function checkOptions(run: Run | null, options: Acknowledged["options"], report: Report): void {
  const { key, queue, tags, priority } = options;
  if (run === null) return report("I1", "A run that was acknowledged is not there.", options);
  const said =
    key === undefined ? { queue, priority, tags: tags && [...new Set(tags as string[])] } : { key };
  const wrong = Object.entries(said).filter(
    ([name, value]) => value !== undefined && differenceOf(run[name as keyof Run], value) !== null,
  );
  if (wrong.length > 0) report("I15", "A run has other options than it was given.", run.id, wrong);
}

/** It is what was asked for, and it can be ended. */
async function checkRun({ run, input, options }: Acknowledged, pawl: Pawl, report: Report): Promise<void> {
  try {
    await run.cancel();
    await run.result({ signal: AbortSignal.timeout(longestEndMs) }).then(
      (output) => {
        if (input !== anything && differenceOf(output, input) !== null)
          report("I15", "An output is not the input.", run.id, Object.keys(options));
      },
      (error: unknown) => {
        if (!(error instanceof PawlError)) throw error;
      },
    );
    checkOptions(await pawl.get(run.id), options, report);
    const history = await run.history();
    if (history.some(({ seq }, index) => seq !== index + 1))
      report(
        "I4",
        "A history has a gap.",
        run.id,
        history.map(({ seq }) => seq),
      );
  } catch (error) {
    report(
      "I16",
      "A run that was acknowledged cannot be ended and read.",
      run.id,
      String(error),
      Object.keys(options),
    );
  }
}

/** Nothing is stuck, and everything can be read, whoever started it. */
async function checkAll({ pawl, live }: Field, since: Date, report: Report): Promise<void> {
  try {
    await live.cancel();
    for await (const run of pawl.listAll({ createdAfter: since, limit: 1_000 })) {
      const dates = [run.createdAt, run.startAt, run.dueAt, run.expiresAt, run.deadlineAt, run.endedAt];
      if (dates.some((date) => date !== null && Number.isNaN(date.getTime())))
        report("I15", "A run has a date that is none.", run.id);
      if (run.status === "blocked") report("I16", "A run is blocked.", run.id, run.workflow);
    }
  } catch (error) {
    report("I16", "The runs cannot be listed.", String(error));
  }
}

const prototypes = [Object.prototype, Array.prototype, Function.prototype, Promise.prototype];

/** No rejection is left to nobody, and no prototype is changed. */
function watchProcess(report: Report): { readonly stop: () => Promise<void> } {
  const shapes = prototypes.map((prototype) => Reflect.ownKeys(prototype).length);
  const note = (reason: unknown): void => report("I19", "A rejection was left to nobody.", String(reason));
  process.on("unhandledRejection", note);
  return {
    async stop() {
      await new Promise((resolve) => void setImmediate(resolve));
      process.off("unhandledRejection", note);
      const now = prototypes.map((prototype) => Reflect.ownKeys(prototype).length);
      if (now.join() !== shapes.join()) report("I22", "A prototype was changed.", shapes, now);
    },
  };
}
