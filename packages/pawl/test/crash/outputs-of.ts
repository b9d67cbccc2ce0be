import type { RunHandle } from "../../src/index.ts";
import { reportOn } from "./scene-report.ts";
import type { Scene } from "./scene.ts";

/** What the runs return. If that takes too long, or one of them fails, the error says where everything stands. */
export async function outputsOf<Output>(
  scene: Scene,
  runs: readonly RunHandle<Output>[],
  withinMs = 30_000,
): Promise<readonly Output[]> {
  try {
    return await Promise.all(runs.map((run) => run.result({ signal: AbortSignal.timeout(withinMs) })));
  } catch (error) {
    const isLate = error instanceof Error && error.name === "TimeoutError";
    const problem = isLate ? `Some runs are not done after ${withinMs} ms.` : String(error);
    throw new Error(`${problem}\n${await reportOn(scene)}`, { cause: error });
  }
}
