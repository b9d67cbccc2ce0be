import { PawlError } from "./error.ts";

/** Carries the place and the fault of a value up to where it is known what the value is of. */
export class Refusal extends Error {
  readonly path: string;
  readonly fault: string;

  constructor(path: string, fault: string, options?: { readonly cause?: unknown }) {
    super(fault, options);
    this.path = path;
    this.fault = fault;
  }

  static tooLarge(most: number): Refusal {
    return new Refusal("$", `is larger than ${most} bytes: keep it elsewhere and store where`);
  }

  /** Trying again is of no use: the same code makes the same value. */
  toPawlError(what: string | undefined): PawlError {
    const { path, fault, cause } = this;
    const subject = what === undefined ? "The value" : `${what}: the value`;
    const options = cause === undefined ? undefined : { cause };
    const error = new PawlError("INVALID_PAYLOAD", `${subject} at ${path} ${fault}.`, { path }, options);
    return Object.assign(error, { retryable: false });
  }
}
