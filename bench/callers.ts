/** Makes so many calls, numbered from 0, with so many under way at a time. */
export async function callFrom(
  callers: number,
  count: number,
  call: (order: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const caller = async (): Promise<void> => {
    while (next < count) await call(next++);
  };
  await Promise.all(Array.from({ length: Math.min(callers, count) }, caller));
}
