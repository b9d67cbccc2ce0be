import { createPawl, workflow } from "pawl";

let calls = 0;

/** Stands for a model: it answers word by word, and hangs up in the middle of its first answer. */
async function* askModel(question: string): AsyncGenerator<string> {
  calls += 1;
  for (const [index, word] of `${question}? Yes, of course.`.split(" ").entries()) {
    if (calls === 1 && index === 3) throw new Error("The model hung up");
    yield word;
  }
}

const agent = workflow(
  { name: "agent", version: 1, retry: { attempts: 3, initial: "10ms" } },
  async (ctx, question: string) => {
    const answer = await ctx.step("ask", async ({ stream }) => {
      const out = stream<string>("answer");
      const words: string[] = [];
      for await (const word of askModel(question)) {
        words.push(word);
        await out.write(word);
      }
      return words.join(" ");
    });
    await ctx.stream("answer").close();
    return answer;
  },
);

await using pawl = createPawl({ url: process.env.DATABASE_URL });
await pawl.migrate();
await pawl.worker({ workflows: [agent] }).start();
const run = await pawl.start(agent, "Is it safe");

// As it is written. The first item of an attempt makes what an earlier one of the same step wrote void.
let words: string[] = [];
for await (const { position, value, attempt, isFirst } of run.stream<string>("answer")) {
  if (isFirst) words = [];
  words.push(value);
  console.log(`${position} (attempt ${attempt}): ${words.join(" ")}`);
}

// A browser that comes back says what it has seen, and gets the rest: also when the run has ended.
await run.result();
const rest: string[] = [];
for await (const { value } of run.stream<string>("answer", { from: 7 })) rest.push(value);
console.log(`from 7: ${rest.join(" ")}`);
