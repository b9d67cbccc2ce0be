import { PrivateServer } from "pawl-test-support/private-server";
import { Verdict } from "../hist/verdict.ts";
import type { Stage } from "../stage.ts";
import { commits } from "./commits.ts";
import { hearing } from "./hearing.ts";
import { histories } from "./histories.ts";
import { lostAnswers } from "./lost-answers.ts";
import { Props, within, type Scene } from "./scene.ts";
import { showing } from "./showing.ts";
import { storms } from "./storms.ts";
import { times } from "./times.ts";
import { roundTrips } from "./values.ts";

const all: readonly Scene[] = [
  ...commits,
  ...lostAnswers,
  ...hearing,
  ...times,
  ...histories,
  ...showing,
  ...roundTrips,
  ...storms,
];
/** Far from UTC, and half an hour off: what is read in local time shows. */
const timeZone = "Australia/Lord_Howe";
const longestMs = 60_000;

/** What a real database does and chance would seldom bring about: each once, as it must come out. */
export const database: Stage = {
  name: "database",
  async run() {
    const before = process.env["TZ"];
    process.env["TZ"] = timeZone;
    try {
      await using server = await PrivateServer.start({
        timezone: timeZone,
        fsync: "off",
        synchronous_commit: "off",
      });
      const url = await server.createDatabase("database");
      const verdict = new Verdict();
      await Promise.all(all.map((scene) => playScene(url, scene, verdict)));
      const { violations } = verdict;
      return {
        landed: new Map(all.map(({ name }) => [name, 1])),
        figures: [`${all.length} scenes.`],
        failures: violations.length === 0 ? [] : [{ violations, seed: null }],
      };
    } finally {
      if (before === undefined) delete process.env["TZ"];
      else process.env["TZ"] = before;
    }
  },
};

async function playScene(url: string, scene: Scene, { report }: Verdict): Promise<void> {
  await using props = await Props.create(url);
  const played = scene.play(props, report).then(() => "played");
  const ended = await within(played, longestMs);
  if (ended !== "played")
    report(scene.invariant, `not so: ${scene.name}`, String(ended ?? "it does not come to an end"));
}
