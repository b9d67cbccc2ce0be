const startedAt = performance.now();

/** One line of the demo's tale, with the seconds since it began. */
export function tell(text: string): void {
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1).padStart(5);
  console.log(`${seconds} s  ${text}`);
}
