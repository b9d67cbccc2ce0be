/** The statements of a script, comments included, in their order. Knows quotes, dollar quotes and comments. */
export function splitStatements(script: string): readonly string[] {
  const statements: string[] = [];
  const token = /--[^\n]*|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$(\w*)\$[\s\S]*?\$\1\$|;/g;
  let from = 0;
  for (const match of script.matchAll(token)) {
    if (match[0] !== ";") continue;
    statements.push(script.slice(from, match.index + 1));
    from = match.index + 1;
  }
  const rest = script.slice(from);
  if (rest.replaceAll(/--[^\n]*/g, "").trim() !== "") statements.push(rest);
  return statements;
}
