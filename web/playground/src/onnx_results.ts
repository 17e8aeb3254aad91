/** What a model computed, and how long it took: outputs as bars or numbers, and the time of each op. */

import type { ModelOutput, NodeTimes, Tensor } from "polygrad";

import { make } from "./dom";
import { countOf, timeOf } from "./timeline";

/** The largest elements of a vector that are shown as bars; of others, the first elements. */
const [MOST_BARS, MOST_NUMBERS] = [10, 64];

const isTensor = (x: ModelOutput): x is Tensor => typeof x === "object" && x !== null && "tolist" in x;

const [SMALLEST, LARGEST] = [1e-3, 1e6];

function textOf(x: number | bigint): string {
  if (typeof x === "bigint" || Number.isInteger(x)) return String(x);
  const size = Math.abs(x);
  return size < SMALLEST || size >= LARGEST ? x.toExponential(2) : x.toPrecision(4);
}

/** The largest elements of a vector, each with its place. */
function bars(values: readonly (number | bigint)[]): HTMLElement {
  const sorted = values.map((value, i) => [i, value] as const).sort(([, a], [, b]) => Number(b) - Number(a));
  const shown = sorted.slice(0, MOST_BARS);
  const largest = Math.max(...shown.map(([, x]) => Math.abs(Number(x)))) || 1;
  const list = make("ol", "bars");
  shown.forEach(([place, value], rank) => {
    const bar = make("span", "bar");
    bar.style.width = `${Math.max(0, (100 * Number(value)) / largest)}%`;
    const number = make("span", "number", textOf(value));
    list.append(make("li", rank === 0 ? "best" : "", String(place), make("span", "track", bar), number));
  });
  return list;
}

/** What there is to see of one output. */
async function shown(name: string, value: ModelOutput): Promise<HTMLElement> {
  if (!isTensor(value)) {
    const text = Array.isArray(value) ? `a sequence of ${value.length}` : JSON.stringify(value);
    return make("div", "model-output", make("code", "", name), make("pre", "", text));
  }
  const title = make("p", "port", make("code", "", name), " ");
  title.append(make("span", "muted", `${value.dtype} (${value.shape.join(", ")})`));
  const elements: (number | bigint)[] = Array.from((await value.data()) as ArrayLike<number | bigint>);
  const isVector = elements.length > 1 && value.shape.at(-1) === elements.length;
  if (isVector) return make("div", "model-output", title, bars(elements));
  const numbers = elements.map(Number);
  const [least, most] = numbers.reduce(
    ([a, b], x) => [Math.min(a, x), Math.max(b, x)],
    [Infinity, -Infinity],
  );
  const mean = numbers.reduce((sum, x) => sum + x, 0) / numbers.length;
  const first = elements.slice(0, MOST_NUMBERS).map(textOf).join("  ");
  const more = elements.length > MOST_NUMBERS ? " …" : "";
  const facts = `${countOf(elements.length)} numbers from ${textOf(least)} to ${textOf(most)}, mean ${textOf(mean)}`;
  return make("div", "model-output", title, make("pre", "", first + more), make("p", "muted hint", facts));
}

/** All outputs, in order. */
export async function outputElements(
  outputs: Readonly<Record<string, ModelOutput>>,
): Promise<readonly HTMLElement[]> {
  const found: HTMLElement[] = [];
  for (const [name, value] of Object.entries(outputs)) found.push(await shown(name, value));
  return found;
}

/** Ops, the one that takes longest first, with a bar for each one's share. */
export function showTimes(
  host: HTMLElement,
  { nodes, rounds, fusedSeconds, fusedLaunches }: NodeTimes,
): void {
  const ops = new Map<string, { nodes: number; launches: number; seconds: number }>();
  for (const { op, seconds, launches } of nodes) {
    const found = ops.get(op) ?? { nodes: 0, launches: 0, seconds: 0 };
    ops.set(op, {
      nodes: found.nodes + 1,
      launches: found.launches + launches,
      seconds: found.seconds + seconds,
    });
  }
  const total = nodes.reduce((sum, { seconds }) => sum + seconds, 0);
  const launches = nodes.reduce((sum, node) => sum + node.launches, 0);
  const rows = [...ops].filter(([, found]) => found.launches > 0);
  rows.sort(([, a], [, b]) => b.seconds - a.seconds);
  const idle = [...ops].filter(([, found]) => found.launches === 0).map(([op]) => op);
  const longest = Math.max(rows[0]?.[1].seconds ?? 0, Number.MIN_VALUE);
  const list = make("ol", "op-times");
  for (const [op, found] of rows) {
    const bar = make("span", "launch-bar");
    bar.style.width = `${(100 * found.seconds) / longest}%`;
    const row = make(
      "li",
      "",
      make("code", "", op),
      make("span", "op-count muted", `× ${found.nodes}`),
      make("span", "launch-track", bar),
      make("span", "launch-time", timeOf(found.seconds)),
    );
    const share = ((100 * found.seconds) / (total || 1)).toFixed(1);
    row.title = `${found.nodes} nodes in ${found.launches} launches, ${share} % of the time`;
    list.append(row);
  }
  const facts =
    `${nodes.length} nodes one by one: ${timeOf(total)} in ${launches} launches. ` +
    `Fused, as a run computes them: ${timeOf(fusedSeconds)} in ${fusedLaunches}. Means of ${rounds}.`;
  const rest = idle.length > 0 ? ` Nothing to compute: ${idle.join(", ")}.` : "";
  host.replaceChildren(list, make("p", "muted hint", facts + rest));
}
