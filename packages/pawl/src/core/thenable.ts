/** Whether it must be awaited. @throws whatever a getter of the value's own does */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  const isObject = (typeof value === "object" && value !== null) || typeof value === "function";
  return isObject && typeof (value as { readonly then?: unknown }).then === "function";
}
