import { Verdict, type Report } from "../hist/verdict.ts";
import { createRng, type Rng } from "../sim/rng.ts";
import { provesNothing, type Stage, type StageFailure } from "../stage.ts";

/** One fault on a real server, told from its beginning until everything is well again. */
export interface Scene {
  readonly name: string;
  /** What must have taken effect in it, or it proves nothing. */
  readonly faults: readonly string[];
  act(tools: SceneTools): Promise<void>;
}

export interface SceneTools {
  readonly rng: Rng;
  /** Whether there is time for all that can be enumerated, and for full sizes. */
  readonly isLong: boolean;
  /** A fault or an operation took effect. */
  readonly landed: (kind: string, times?: number) => void;
  /** Something was measured. */
  readonly figure: (line: string) => void;
  /** It cannot be played here, and this is why: nothing is proven by it, and nothing is wrong. */
  readonly leaveOut: (why: string) => void;
  /** A promise was broken. */
  readonly report: Report;
}

/** From here on there is time for full sizes. */
const longSeconds = 3_600;

/** Plays its scenes one after the other, and all of them again as often as there is time for it. */
export function createSceneStage(name: string, scenes: readonly Scene[]): Stage {
  return {
    name,
    takesItsTime: true,
    async run(task) {
      const landed = new Map<string, number>();
      const figures: string[] = [];
      const failures: StageFailure[] = [];
      const play = async (scene: Scene, seed: string): Promise<void> => {
        const playedAt = performance.now();
        const failure = await playScene(scene, seed, landed, (line) =>
          figures.push(`${scene.name}: ${line}`),
        );
        failures.push(...failure);
        console.log(`   ${scene.name}: ${((performance.now() - playedAt) / 1_000).toFixed(1)} s`);
      };
      if (task.isRepeat) {
        const chosen = scenes.filter((scene) => task.seed.endsWith(`.${scene.name}`));
        for (const scene of chosen.length > 0 ? chosen : scenes) await play(scene, task.seed);
        return { landed, figures, failures };
      }
      const size = task.seconds >= longSeconds ? "long" : "short";
      const startedAt = performance.now();
      for (let round = 1; ; round++) {
        for (const scene of scenes) await play(scene, [task.seed, round, size, scene.name].join("."));
        const spentSeconds = (performance.now() - startedAt) / 1_000;
        if (failures.length > 0 || spentSeconds + spentSeconds / round > task.seconds) break;
      }
      return { landed, figures, failures };
    },
  };
}

async function playScene(
  scene: Scene,
  seed: string,
  landed: Map<string, number>,
  figure: (line: string) => void,
): Promise<readonly StageFailure[]> {
  const verdict = new Verdict();
  const own = new Map<string, number>();
  const leftOut: string[] = [];
  try {
    await scene.act({
      rng: createRng(seed),
      isLong: seed.includes(".long."),
      landed(kind, times = 1) {
        own.set(kind, (own.get(kind) ?? 0) + times);
      },
      figure,
      leaveOut(why) {
        leftOut.push(why);
        figure(`left out: ${why}`);
      },
      report: verdict.report,
    });
  } catch (error) {
    verdict.report("Scene", `"${scene.name}" came to no end: ${describeError(error)}`);
  }
  for (const [kind, times] of own) landed.set(kind, (landed.get(kind) ?? 0) + times);
  const missing = leftOut.length > 0 ? [] : scene.faults.filter((fault) => (own.get(fault) ?? 0) === 0);
  const failures = missing.map((fault) => provesNothing(`In "${scene.name}" never happened: ${fault}.`));
  const { violations } = verdict;
  return violations.length === 0 ? failures : [{ violations, seed }, ...failures];
}

function describeError(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
