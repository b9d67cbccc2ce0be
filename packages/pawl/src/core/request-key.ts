/**
 * What a workflow's code can ask for. A request is identified by family, scope, name and occurrence, never by its
 * position in the code.
 */
export type Family =
  | "step"
  | "sleep"
  | "wait"
  | "start"
  | "child"
  | "publish"
  | "update"
  | "answer"
  | "stream"
  | "pause";

/**
 * A request's name in the history, readable and unambiguous:
 *
 *     charge              a step, by its name (its event's kind says that it is one)
 *     charge#2            the same name asked for a second time
 *     sleep, sleep#2      a sleep
 *     signal:shipped      a wait for a signal; so the timers of sleeps and of waits cannot be confused
 *     checkout            a child, by its workflow's name; its start and its end are one name in two families
 *     publish:progress    a value that is published under `progress`
 *     charge//publish:progress   one that the step `charge` published with its result; no scope has an empty name
 *     update:setAddress   a wait for an update, its answer, and the scope of its handler
 *     stream:tokens       something that the code writes to a stream
 *     close:tokens        its closing
 *     pause, pause#2      a pause that the code asked for
 *     orders/charge       inside the scope `orders`, which is written like a request: `orders#2/charge`
 *     and\/or             `\`, `/` and `#` that belong to a name are escaped
 */
export function requestKey(scope: string, name: string, occurrence: number): string {
  const path = scope === "" ? escape(name) : `${scope}/${escape(name)}`;
  return occurrence === 1 ? path : `${path}#${occurrence}`;
}

function escape(name: string): string {
  return /[\\/#]/.test(name) ? name.replace(/[\\/#]/g, String.raw`\$&`) : name;
}

export const sleepName = "sleep";

export const pauseName = "pause";

export function waitName(signal: string): string {
  return `signal:${signal}`;
}

export function updateName(update: string): `update:${string}` {
  return `update:${update}`;
}

export function publishName(key: string): string {
  return `publish:${key}`;
}

/** What a step publishes with its result: not asked for by itself, and so no request. */
export function publishedWith(stepKey: string, key: string): string {
  return requestKey(`${stepKey}/`, publishName(key), 1);
}

export function isPublishedWithStep(key: string): boolean {
  return /^(?:(?:\\.|[^\\/])+\/)+\/(?:\\.|[^\\/])*$/.test(key);
}

export function streamName(stream: string): string {
  return `stream:${stream}`;
}

export function closeName(stream: string): string {
  return `close:${stream}`;
}

/** The stream that this request closes; null: it does something else. */
export function closedStream(requestKey: string): string | null {
  const name = nameOf(requestKey);
  return name.startsWith(closeName("")) ? name.slice(closeName("").length) : null;
}

/** What the value of this request was published under, in whatever scope. As `published_key` in the schema. */
export function publishedKey(requestKey: string): string {
  return nameOf(requestKey).slice(publishName("").length);
}

/** The name in a request's key: without scope, occurrence and escapes. */
function nameOf(key: string): string {
  return lastSegment(key)
    .replace(/^((?:\\.|[^\\#])*)#\d+$/, "$1")
    .replace(/\\(.)/g, "$1");
}

/** The name of the scope that all the others of this request are in, without occurrence and escapes; null: it is in none. */
export function outermostScope(requestKey: string): string | null {
  const [scope] = /^(?:\\.|[^\\/])*(?=\/)/.exec(requestKey) ?? [];
  return scope === undefined ? null : nameOf(scope);
}

function lastSegment(key: string): string {
  return key.replace(/^(?:(?:\\.|[^\\/])*\/)*/, "");
}

/** Whether a timer belongs to a sleep, or is a wait's timeout. */
export function familyOfTimer(key: string): "sleep" | "wait" {
  return lastSegment(key).startsWith(waitName("")) ? "wait" : "sleep";
}
