import { isBroken, judge, type Verdict } from "./judge.ts";
import { readMutants, type Mutant } from "./mutant.ts";
import { ThrowAwayTree } from "./throw-away-tree.ts";

interface MutantTerms {
  /** Which mutants; none means all. */
  readonly names: readonly string[];
  readonly profile: string;
  readonly seed: string;
  readonly seconds: number;
}

interface Fate {
  readonly mutant: Mutant;
  /** Null: it survived. */
  readonly caught: { readonly stage: string; readonly invariants: readonly string[] } | null;
  readonly seconds: number;
}

/**
 * Spoils a copy of the engine, one mistake at a time, and demands that the harness finds it. First without a mistake: nothing
 * may be found then. Answers whether all is well.
 */
export async function runMutants({ names, ...terms }: MutantTerms): Promise<boolean> {
  const mutants = readMutants(names);
  // Otherwise what is being judged would go on.
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
  await using tree = await ThrowAwayTree.create();
  const sound = await judge(tree.path, terms);
  const early = sound.findings.flatMap(({ violations }) => violations);
  if (early.some(isBroken) || sound.fault !== null) {
    console.error("The unspoilt engine does not pass:", sound.fault ?? "", early);
    return false;
  }
  console.log(`The unspoilt engine keeps every promise (${sound.seconds.toFixed(1)} s).`);
  for (const { says } of early) console.warn(`Too little happened: ${says}`);
  const fates: Fate[] = [];
  for (const mutant of mutants) {
    tree.spoil(mutant);
    const fate = fateOf(mutant, await judge(tree.path, terms));
    tree.mend(mutant);
    console.log(describeFate(fate));
    fates.push(fate);
  }
  console.log(`\n${describeTable(fates)}`);
  const survivors = fates.filter(({ caught }) => caught === null);
  if (survivors.length === 0) console.log(`\nAll ${fates.length} were caught.`);
  else console.error(`\nSurvived: ${survivors.map(({ mutant }) => mutant.name).join(", ")}.`);
  return survivors.length === 0;
}

function fateOf(mutant: Mutant, { findings, seconds, fault }: Verdict): Fate {
  // An engine that does not even start shows nothing of the harness, nor does a harness that comes to no end.
  if (fault !== null) console.error(`${mutant.name} was not judged. ${fault}`);
  const last = fault === null ? findings.at(-1) : undefined;
  const broken = (last?.violations ?? []).filter(isBroken);
  const invariants = [...new Set(broken.map(({ invariant }) => invariant))];
  return {
    mutant,
    caught: last === undefined || broken.length === 0 ? null : { stage: last.stage, invariants },
    seconds,
  };
}

function describeFate({ mutant, caught, seconds }: Fate): string {
  const by = caught === null ? "SURVIVED" : `${caught.stage}, ${caught.invariants.join(" ")}`;
  return `${mutant.name.padEnd(32)} ${seconds.toFixed(1).padStart(5)} s  ${by}`;
}

/** As Markdown. */
function describeTable(fates: readonly Fate[]): string {
  return [
    "| mutant | what is wrong | caught by | breaks | seconds |",
    "| --- | --- | --- | --- | ---: |",
    ...fates.map(({ mutant, caught, seconds }) =>
      [
        "",
        mutant.name,
        mutant.says,
        caught?.stage ?? "**survived**",
        caught?.invariants.join(", ") ?? "",
        seconds.toFixed(1),
        "",
      ]
        .join(" | ")
        .trim(),
    ),
  ].join("\n");
}
