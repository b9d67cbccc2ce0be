// Two rules that oxlint lacks: which folder may import which, and `new Date()`.

import { dirname, join, posix, relative, sep } from "node:path";

/**
 * Imports of a source tree point down: each folder names the folders and packages it may import.
 *
 * Options: `root`, the tree's path in the repository; `folders`, what each may import, as
 * `{ "worker": ["core", "store", "runtime"] }`, where `"runtime(types)"` allows types alone, `"runtime/workflow.ts"` that
 * file, and `"*"` everything inside the tree; `packages`, which bare imports each may name, where `"*"` stands for all folders.
 * Files directly in the root, the barrel among them, import what they like and are imported by nobody.
 */
const boundaries = {
  meta: { type: "problem", schema: false },
  create(context) {
    const { root, folders, packages } = context.options[0];
    const absoluteRoot = join(import.meta.dirname, "../..", root);
    const from = folderOf(absoluteRoot, context.filename);
    if (from === undefined || from === "") return {};

    const mayImportFolder = folders[from];
    if (mayImportFolder === undefined) {
      const message = `${from}/ has no import boundary: give it one in .oxlintrc.jsonc.`;
      return { Program: (node) => context.report({ node, message }) };
    }
    const mayImportPackage = [...(packages["*"] ?? []), ...(packages[from] ?? [])];

    const check = (node, isTypeOnly) => {
      const specifier = node.value;
      if (typeof specifier !== "string") return;
      const message = specifier.startsWith(".")
        ? checkFolder(specifier, isTypeOnly)
        : checkPackage(specifier);
      if (message !== null) context.report({ node, message });
    };

    const checkFolder = (specifier, isTypeOnly) => {
      const target = join(dirname(context.filename), specifier);
      const to = folderOf(absoluteRoot, target);
      if (to === from || mayImportFolder.includes(to)) return null;
      if (mayImportFolder.includes(pathIn(absoluteRoot, target))) return null;
      if (to === undefined) return `${from}/ may not import from outside ${root}.`;
      if (to === "") return `${from}/ may not import ${specifier}: the barrel is for users.`;
      if (mayImportFolder.includes("*")) return null;
      if (isTypeOnly && mayImportFolder.includes(`${to}(types)`)) return null;
      return `${from}/ may not import ${to}/: imports point down.`;
    };

    const checkPackage = (specifier) => {
      const name = specifier.startsWith("node:") ? "node:*" : packageOf(specifier);
      return mayImportPackage.includes(name) ? null : `${from}/ may not import the package ${specifier}.`;
    };

    return {
      ImportDeclaration: (node) => check(node.source, isTypeOnlyImport(node)),
      ExportNamedDeclaration: (node) => node.source && check(node.source, node.exportKind === "type"),
      ExportAllDeclaration: (node) => check(node.source, node.exportKind === "type"),
      ImportExpression: (node) => check(node.source, false),
      TSImportType: (node) => check(node.source ?? node.argument, true),
    };
  },
};

/** The tree's first-level folder that holds a file; "" for the root itself; undefined outside of it. */
function folderOf(root, filename) {
  const path = pathIn(root, filename);
  if (path.startsWith("../")) return undefined;
  const slash = path.indexOf("/");
  return slash === -1 ? "" : path.slice(0, slash);
}

function pathIn(root, filename) {
  return relative(root, filename).split(sep).join(posix.sep);
}

/** The package's name, without the path inside it. */
function packageOf(specifier) {
  return specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/");
}

function isTypeOnlyImport(node) {
  if (node.importKind === "type") return true;
  const { specifiers } = node;
  return specifiers.length > 0 && specifiers.every((specifier) => specifier.importKind === "type");
}

/** The process's clock: `new Date()` and `Date()`. `Date.now()` is left to no-restricted-properties. */
const noAmbientDate = {
  meta: { type: "problem", schema: [] },
  create(context) {
    const check = (node) => {
      if (node.callee.type !== "Identifier" || node.callee.name !== "Date") return;
      if (node.type === "NewExpression" && node.arguments.length > 0) return;
      context.report({ node, message: "Take the time from the injected clock." });
    };
    return { NewExpression: check, CallExpression: check };
  },
};

export default {
  meta: { name: "pawl" },
  rules: { boundaries, "no-ambient-date": noAmbientDate },
};
