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
  | "stream";

/**
 * A request's name in the history, readable and unambiguous:
 *
 *     charge              a step, by its name (its event's kind says that it is one)
 *     charge#2            the same name asked for a second time
 *     sleep, sleep#2      a sleep
 *     signal:shipped      a wait for a signal; so the timers of sleeps and of waits cannot be confused
 *     checkout            a child, by its workflow's name; its start and its end are one name in two families
 *     publish:progress    a value that is published under `progress`
 *     update:setAddress   a wait for an update, its answer, and the scope of its handler
 *     stream:tokens       something that the code writes to a stream
 *     close:tokens        its closing
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

export function updateName(update: string): `update:${string}` {
  return `update:${update}`;
}

export function publishName(key: string): string {
  return `publish:${key}`;
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

function lastSegment(key: string): string {
  return key.replace(/^(?:(?:\\.|[^\\/])*\/)*/, "");
}

/** Whether a timer belongs to a sleep, or is a wait's timeout. */
export function familyOfTimer(key: string): "sleep" | "wait" {
  return lastSegment(key).startsWith(waitName("")) ? "wait" : "sleep";
}
