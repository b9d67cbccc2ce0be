// Does what `npm run verify` does, up to the first broken promise, and tells its parent what each stage has found. Arguments:
// the profile, the seed, and for how many seconds.

import { profiles } from "../profiles.ts";
import type { Finding } from "./judge.ts";

const [name = "", seed = "", seconds] = process.argv.slice(2);
const profile = profiles.get(name);
if (profile === undefined) throw new Error(`There is no profile ${name}.`);
for (const { stage, share } of profile) {
  const { failures } = await stage.run({ seed, seconds: share * Number(seconds), isRepeat: false });
  const violations = failures.flatMap((failure) => failure.violations);
  const finding: Finding = {
    stage: stage.name,
    violations: violations.map(({ invariant, says }) => ({ invariant, says })),
  };
  process.send?.(finding);
  if (violations.length === 0) continue;
  process.exitCode = 1;
  break;
}
process.disconnect();
