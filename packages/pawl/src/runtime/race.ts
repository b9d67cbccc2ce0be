import type { Branch, Race, Request } from "./request.ts";

export function createRace(branches: number, outer: Branch | null): Race {
  const race: { branches: Branch[] } = { branches: [] };
  for (let number = 0; number < branches; number++)
    race.branches.push({ race, outer, open: new Set(), isLost: false });
  return race;
}

/** The branch has asked for this. */
export function enterBranch(request: Request, branch: Branch | null): void {
  request.branch = branch;
  for (let each = branch; each !== null; each = each.outer) each.open.add(request);
}

/** The request is settled, or withdrawn. */
export function leaveBranch(request: Request): void {
  for (let each = request.branch; each !== null; each = each.outer) each.open.delete(request);
}

/**
 * Whether another branch may win before this request could: an answer to it is on the way to the code. A wait that took a
 * signal now might take what nobody is there to get.
 */
export function isHeldUp(request: Request): boolean {
  for (let own = request.branch; own !== null; own = own.outer) {
    for (const branch of own.race.branches) {
      if (branch === own) continue;
      for (const { state } of branch.open) if (state === "answering") return true;
    }
  }
  return false;
}

/** Whether code in this branch has lost a race. */
export function isLost(branch: Branch | null): boolean {
  for (let each = branch; each !== null; each = each.outer) if (each.isLost) return true;
  return false;
}
