import { execFileSync } from "node:child_process";

/** Today's date and the commit: every day and every commit looks elsewhere, and what was found is found again. */
export function seedBase(): string {
  const date = new Date().toISOString().slice(0, 10).replaceAll("-", "");
  try {
    const commit = execFileSync("git", ["rev-parse", "--short", "HEAD"], {
      encoding: "utf8",
      cwd: import.meta.dirname,
      stdio: ["ignore", "pipe", "ignore"],
    });
    return `${date}.${commit.trim()}`;
  } catch {
    return date;
  }
}
