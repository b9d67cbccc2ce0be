/** The version of this library, as its package says it. */
export const pawlVersion = "0.1.0";
