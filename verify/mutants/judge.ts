import { fork } from "node:child_process";
import { join } from "node:path";
import type { Violation } from "../hist/verdict.ts";

/** What a stage has found. Plain values only: it travels between processes. */
export interface Finding {
  readonly stage: string;
  readonly violations: readonly FoundViolation[];
}

type FoundViolation = Pick<Violation, "invariant" | "says">;

/** That too little has happened to prove anything is no broken promise. */
export function isBroken({ invariant }: FoundViolation): boolean {
  return invariant !== "Proof";
}

export interface Verdict {
  /** The last is that of the first stage that found a broken promise. */
  readonly findings: readonly Finding[];
  /** From the start of the process to its last finding. */
  readonly seconds: number;
  /** What it said where it did not come to its end as it should. */
  readonly fault: string | null;
}

interface Terms {
  readonly profile: string;
  readonly seed: string;
  readonly seconds: number;
}

/** Verifies the tree at this path, in processes of its own. */
export function judge(path: string, { profile, seed, seconds }: Terms): Promise<Verdict> {
  const beganAt = performance.now();
  const child = fork(join(path, "verify/mutants/judge-main.ts"), [profile, seed, String(seconds)], {
    cwd: path,
    stdio: ["ignore", "pipe", "pipe", "ipc"],
    // Its children are to end with it.
    detached: true,
  });
  const findings: Finding[] = [];
  let lastAt = beganAt;
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (chunk: Buffer) => (said = (said + chunk.toString()).slice(-4_000)));
  child.on("message", (finding) => {
    findings.push(finding as Finding);
    lastAt = performance.now();
  });
  const kill = (): void => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, "SIGKILL");
  };
  const giveUp = setTimeout(kill, (3 * seconds + 60) * 1_000);
  process.once("exit", kill);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => {
      clearTimeout(giveUp);
      process.off("exit", kill);
      const isFound = findings.some(({ violations }) => violations.length > 0);
      const isRight = code === (isFound ? 1 : 0);
      const fault = isRight ? null : `It ended with ${signal ?? code}.\n${said}`;
      resolve({ findings, seconds: (lastAt - beganAt) / 1_000, fault });
    });
  });
}
