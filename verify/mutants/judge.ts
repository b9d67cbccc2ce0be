import { fork } from "node:child_process";
import { join } from "node:path";

/** What a stage has found. Plain values only: it travels between processes. */
export interface Finding {
  readonly stage: string;
  readonly violations: readonly { readonly invariant: string; readonly says: string }[];
}

export interface Verdict {
  /** The last is that of the first stage that found anything. */
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
  const giveUp = setTimeout(() => process.kill(-(child.pid ?? 0), "SIGKILL"), (3 * seconds + 60) * 1_000);
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code, signal) => {
      clearTimeout(giveUp);
      const isFound = (findings.at(-1)?.violations.length ?? 0) > 0;
      const isRight = code === (isFound ? 1 : 0);
      const fault = isRight ? null : `It ended with ${signal ?? code}.\n${said}`;
      resolve({ findings, seconds: (lastAt - beganAt) / 1_000, fault });
    });
  });
}
