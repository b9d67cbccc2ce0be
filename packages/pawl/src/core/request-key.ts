/**
 * What a workflow's code can ask for. A request is identified by family, scope, name and occurrence, never by its
 * position in the code.
 */
export type Family = "step" | "sleep" | "wait" | "start" | "child";

/**
 * A request's name in the history, readable and unambiguous:
 *
 *     charge              a step, by its name (its event's kind says that it is one)
 *     charge#2            the same name asked for a second time
 *     sleep, sleep#2      a sleep
 *     signal:shipped      a wait for a signal; so the timers of sleeps and of waits cannot be confused
 *     checkout            a child, by its workflow's name; its start and its end are one name in two families
 *     orders/charge       inside the scope `orders`, which is written like a request: `orders#2/charge`
 *     and\/or             `\`, `/` and `#` that belong to a name are escaped
 */
export function requestKey(scope: string, name: string, occurrence: number): string {
  const path = scope === "" ? escape(name) : `${scope}/${escape(name)}`;
  return occurrence === 1 ? path : `${path}#${occurrence}`;
}

function escape(name: string): string {
  return name.replace(/[\\/#]/g, String.raw`\$&`);
}

export const sleepName = "sleep";

export function waitName(signal: string): string {
  return `signal:${signal}`;
}

/** Whether a timer belongs to a sleep, or is a wait's timeout. */
export function familyOfTimer(key: string): "sleep" | "wait" {
  const lastSegment = key.replace(/^(?:(?:\\.|[^\\/])*\/)*/, "");
  return lastSegment.startsWith(waitName("")) ? "wait" : "sleep";
}
