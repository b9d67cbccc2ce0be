/** Whether this is a date that names an instant. */
export function isDate(value: unknown): value is Date {
  try {
    return value instanceof Date && !Number.isNaN(value.getTime());
  } catch {
    // It only inherits from one.
    return false;
  }
}
