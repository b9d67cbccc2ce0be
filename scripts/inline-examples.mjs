// Copies programs from examples/ into the pages that show them, so that what a page shows is compiled.
// A page marks the place with `<!-- example: examples/name.ts -->` and `<!-- /example -->`.
// `--check` writes nothing and fails when a page is stale.

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { emit } from "./generated-file.mjs";

const root = join(import.meta.dirname, "..");
const pages = [
  "README.md",
  "docs/writing-workflows.md",
  "docs/values.md",
  "docs/failing.md",
  "docs/workers.md",
  "docs/transactions.md",
  "docs/shapes.md",
  "docs/starting.md",
  "docs/ending.md",
  "docs/operating.md",
  "docs/seeing.md",
  "docs/options.md",
  "docs/children.md",
  "docs/graphs.md",
  "docs/waiting.md",
  "docs/steps.md",
  "docs/effects.md",
  "docs/sagas.md",
  "docs/cancelling.md",
  "docs/changing-code.md",
  "docs/streams.md",
  "docs/front-ends.md",
  "docs/machines.md",
];

for (const page of pages) {
  const text = await readFile(join(root, page), "utf8");
  const parts = text.split(/(<!-- example: \S+ -->\n)[^]*?(?=<!-- \/example -->)/);
  for (const [index, part] of parts.entries()) {
    const example = /^<!-- example: (\S+) -->\n$/.exec(part)?.[1];
    if (example === undefined) continue;
    const code = await readFile(join(root, example), "utf8");
    parts[index] = `${part}\n\`\`\`ts\n${code.trimEnd()}\n\`\`\`\n\n`;
  }
  await emit(join(root, page), parts.join(""));
}
