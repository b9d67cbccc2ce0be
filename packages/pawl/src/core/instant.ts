/** Of the calendar of every store and of this language, in ms. */
export const latestInstant = 8.64e15;

/** Whether this is a date that names an instant. */
export function isDate(value: unknown): value is Date {
  try {
    return value instanceof Date && !Number.isNaN(value.getTime());
  } catch {
    // It only inherits from one.
    return false;
  }
}
