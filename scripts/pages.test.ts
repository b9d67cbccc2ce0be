import { access, readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "..");

/** The pages that people read, from the root of the repository. */
async function listPages(): Promise<readonly string[]> {
  const docs = await readdir(join(root, "docs"), { recursive: true });
  const packages = await readdir(join(root, "packages"));
  return [
    "README.md",
    "CONTRIBUTING.md",
    ...docs.filter((path) => path.endsWith(".md")).map((path) => join("docs", path)),
    ...packages.map((name) => join("packages", name, "README.md")),
  ];
}

const read = (path: string): Promise<string> => readFile(join(root, path), "utf8");

/** Code may hold what looks like a link or a heading. */
const withoutCode = (text: string): string => text.replaceAll(/^```[^]*?^```/gm, "");

/** The anchor that a heading gets where pages are shown. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-");
}

async function hasTarget(page: string, link: string): Promise<boolean> {
  const [path = "", anchor] = link.split("#");
  const target = path === "" ? page : join(dirname(page), path);
  if (anchor === undefined) {
    return access(join(root, target)).then(
      () => true,
      () => false,
    );
  }
  const text = await read(target).catch(() => "");
  const headings = [...withoutCode(text).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => heading);
  return headings.map(anchorOf).includes(anchor);
}

test("every link from one page to another leads somewhere", async () => {
  const broken: string[] = [];
  for (const page of await listPages()) {
    for (const [, link = ""] of withoutCode(await read(page)).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (!/^[a-z]+:/.test(link) && !(await hasTarget(page, link))) broken.push(`${page}: ${link}`);
    }
  }
  expect(broken).toEqual([]);
});

test("the list of pages names each page", async () => {
  const list = await read("docs/README.md");
  const pages = (await readdir(join(root, "docs"))).filter((name) => /^[a-z].*\.md$/.test(name));
  expect(pages.filter((name) => !list.includes(`](${name})`))).toEqual([]);
});

test("the list of decisions names each one, and no two have one number", async () => {
  const list = await read("docs/decisions/README.md");
  const names = await readdir(join(root, "docs/decisions"));
  const decisions = names.filter((name) => /^\d{4}-.*\.md$/.test(name));
  expect(decisions.filter((name) => !list.includes(`[${name.slice(0, 4)}](${name})`))).toEqual([]);
  expect(new Set(decisions.map((name) => name.slice(0, 4))).size).toBe(decisions.length);
});

test("the table of error codes has every code, and no other", async () => {
  const source = await read("packages/pawl/src/core/error.ts");
  const codes = [...source.matchAll(/^ {2}\| "([A-Z_]+)"/gm)].map(([, code]) => code);
  expect(codes).toContain("RUN_FAILED");
  const [, section = ""] = (await read("docs/writing-workflows.md")).split("## Error codes");
  const rows = [...section.matchAll(/^\|([^|]*)\|/gm)].map(([, cell = ""]) => cell);
  const told = rows.flatMap((cell) => [...cell.matchAll(/`([A-Z_]+)`/g)].map(([, code]) => code));
  expect(new Set(told)).toEqual(new Set(codes));
  expect(told).toHaveLength(codes.length);
});
