import { checkDuration, checkInteger, checkName, checkTags } from "../core/options.ts";
import { checkRetry } from "../core/retry.ts";

/** What each of the `CallOptions` must be. */
export const callChecks = {
  queue: checkName,
  priority: checkInteger(-(2 ** 31), 2 ** 31 - 1),
  timeout: checkDuration,
  expiresIn: checkDuration,
  retry: checkRetry,
  tags: checkTags,
};
