/** A workload, and how well each contestant did in it: above 1 is better than Pawl, below 1 worse. */
export interface Panel {
  readonly title: string;
  readonly bars: readonly { readonly name: string; readonly times: number; readonly label: string }[];
}

const width = 860;
const left = 150;
const right = 150;
const barHeight = 16;
const colours: Readonly<Record<string, string>> = { pawl: "#2563eb", limit: "#9ca3af" };

/** All panels as one SVG. The scale is logarithmic: each line is ten times the one to its left. */
export function plot(panels: readonly Panel[], caption: string): string {
  const all = panels.flatMap(({ bars }) => bars.map(({ times }) => Math.log10(times)));
  const [least, most] = [Math.floor(Math.min(...all, 0)), Math.ceil(Math.max(...all, 0))];
  const x = (times: number): number =>
    left + ((Math.log10(times) - least) / Math.max(1, most - least)) * (width - left - right);
  const parts: string[] = [];
  let y = 50;
  for (const { title, bars } of panels) {
    parts.push(text(10, y, title, `font-weight="600"`));
    y += 10;
    for (const { name, times, label } of bars) {
      const end = x(times);
      parts.push(
        text(left - 8, y + 12, name, `text-anchor="end"`),
        `<rect x="${left}" y="${y + 2}" width="${Math.max(1, end - left).toFixed(1)}" height="${barHeight - 4}" rx="2" fill="${colours[name] ?? "#f59e0b"}"/>`,
        text(end + 6, y + 12, label),
      );
      y += barHeight;
    }
    y += 24;
  }
  const lines = Array.from({ length: most - least + 1 }, (_, index) => {
    const at = x(10 ** (least + index)).toFixed(1);
    return `<line x1="${at}" y1="34" x2="${at}" y2="${y - 16}" stroke="#e5e7eb"/>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${y}" font-family="system-ui, sans-serif" font-size="12">`,
    `<rect width="${width}" height="${y}" fill="#ffffff"/>`,
    text(10, 22, caption, `fill="#6b7280"`),
    ...lines,
    ...parts,
    "</svg>\n",
  ].join("\n");
}

function text(x: number, y: number, words: string, more = ""): string {
  const escaped = words.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<text x="${x.toFixed(1)}" y="${y}" ${more}>${escaped}</text>`;
}
