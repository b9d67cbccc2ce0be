import { checkInteger, checkName, checkOptions } from "../core/options.ts";
import type { PatchUse } from "../store/run-record.ts";

/** How far a patch has come, to tell when its old side can go. */
export interface PatchView {
  /** What `ctx.patch` was called with. */
  readonly id: string;
  /** When a run first took the new side. */
  readonly since: Date;
  /** Live runs on the new side. */
  readonly runs: number;
  /** Live runs that started before that and have not taken the new side: they may need the old one. */
  readonly olderRuns: number;
  /**
   * Live runs that started since and have not taken the new side: they have not come to it, or a worker with the code
   * from before took them past it.
   */
  readonly newerRuns: number;
  /**
   * No live run started before the patch came: the call and the old side can go, unless workers with the code from before
   * still run, or did when a run of `newerRuns` started. A run that was overlooked is blocked, and goes on once the old
   * side is back.
   */
  readonly isRetirable: boolean;
}

/** @throws {PawlError} `INVALID_OPTION` */
export function readPatchedWorkflow(workflow: unknown): PatchedWorkflow {
  const checks = { name: checkName, version: checkInteger(1, 2 ** 31 - 1) };
  const required = ["name", "version"] as const;
  return checkOptions<PatchedWorkflow>("patches", identityOf(workflow), checks, { required });
}

interface PatchedWorkflow {
  readonly name: string;
  readonly version: number;
}

/** A workflow has more to it than its name and version. What cannot be read has neither. */
function identityOf(workflow: unknown): PatchedWorkflow {
  try {
    const { name, version } = workflow as PatchedWorkflow;
    return { name, version };
  } catch {
    return {} as PatchedWorkflow;
  }
}

export function readPatch({ patch, since, runs, olderRuns, newerRuns }: PatchUse): PatchView {
  return {
    id: patch,
    since: new Date(since),
    runs,
    olderRuns,
    newerRuns,
    isRetirable: olderRuns === 0,
  };
}
