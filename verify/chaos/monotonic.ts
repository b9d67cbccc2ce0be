/** The machine's monotonic clock, ms: the same in every process, whatever its clock says. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
