import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { checkAcknowledged, checkGround } from "../scenes/check-ground.ts";
import { Ground } from "../scenes/ground.ts";
import { Load } from "../scenes/load.ts";
import type { Scene } from "../scenes/scene.ts";
import type { Rng } from "../sim/rng.ts";

/** Passes everything on; now and then an answer breaks off in the middle of a message, and its connection with it. */
class TearingProxy implements AsyncDisposable {
  readonly url: string;
  torn = 0;
  /** How likely each answer is to break off. */
  chance = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(server: Server, target: URL, rng: Rng) {
    this.#server = server;
    const own = new URL(target);
    own.host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    this.url = own.href;
    server.on("connection", (client) =>
      this.#join(client, connect(Number(target.port), target.hostname), rng),
    );
  }

  static async listen(url: string, rng: Rng): Promise<TearingProxy> {
    const server = createServer({ noDelay: true });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    return new TearingProxy(server, new URL(url), rng);
  }

  #join(client: Socket, upstream: Socket, rng: Rng): void {
    const cut = (): void => void (client.destroy(), upstream.destroy());
    for (const socket of [client, upstream]) {
      this.#sockets.add(socket);
      socket.on("error", cut);
      socket.on("close", () => (cut(), this.#sockets.delete(socket)));
    }
    client.on("data", (chunk) => upstream.write(chunk));
    upstream.on("data", (chunk) => {
      // An answer with rows: shorter ones have no middle that tells anything.
      if (chunk.length < 40 || !rng.chance(this.chance)) {
        client.write(chunk);
        return;
      }
      this.torn += 1;
      client.write(chunk.subarray(0, 1 + rng.below(chunk.length - 1)), cut);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }
}

/** Answers that break off in the middle of a row: nothing is made of what came, and the call is repeated. */
export const tornAnswers: Scene = {
  name: "torn-answers",
  faults: ["answer torn in the middle"],
  async act({ rng, isLong, landed, figure, report }) {
    await using ground = await Ground.open();
    const proxy = ground.own(await TearingProxy.listen(ground.url, rng));
    const hands = await Promise.all([
      ground.hire({ url: proxy.url, lease: 2_000 }),
      ground.hire({ url: proxy.url, lease: 2_000 }),
    ]);
    const load = new Load(ground.connect({ url: proxy.url }), 30);
    await pause(500);
    proxy.chance = 0.05;
    await pause(isLong ? 120_000 : 5_000);
    proxy.chance = 0;
    await load.end();
    const drainMs = await ground.drain();
    landed("answer torn in the middle", proxy.torn);
    await checkAcknowledged(ground, report, load.started);
    await checkGround(ground, report);
    const dead = hands.filter(({ isAlive }) => !isAlive).length;
    if (dead > 0) report("I19", `${dead} workers did not outlive torn answers`);
    figure(`${load.started.length} runs, ${proxy.torn} answers torn, drained in ${drainMs} ms`);
  },
};
