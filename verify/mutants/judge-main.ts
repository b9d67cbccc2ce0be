// Does what `npm run verify` does, up to the first broken promise, and tells its parent what each stage has found. What takes
// least time goes first. Arguments: the profile, the seed, and for how many seconds.

import { profiles } from "../profiles.ts";
import { isBroken, type Finding } from "./judge.ts";

const [name = "", seed = "", seconds] = process.argv.slice(2);
const profile = profiles.get(name);
if (profile === undefined) throw new Error(`There is no profile ${name}.`);
for (const { stage, share } of profile.toSorted((a, b) => a.share - b.share)) {
  const { failures } = await stage.run({ seed, seconds: share * Number(seconds), isRepeat: false });
  const finding: Finding = {
    stage: stage.name,
    violations: failures
      .flatMap(({ violations }) => violations)
      .map(({ invariant, says }) => ({ invariant, says })),
  };
  process.send?.(finding);
  if (finding.violations.length > 0) process.exitCode = 1;
  if (finding.violations.some(isBroken)) break;
}
process.disconnect();
