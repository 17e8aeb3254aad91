/** A kernel's graph, drawn in layers: sources above, what reads them below. Arrow keys walk along its edges. */

import { make } from "./dom";
import type { Graph, Node } from "./inspected";
import type { Box, LayoutAnswer, LayoutRequest, Point } from "./layout";

const SVG = "http://www.w3.org/2000/svg";
const [CHARACTER, PADDING, LINE, MOST_CHARACTERS] = [7.3, 10, 16, 30];
const [SMALLEST, READABLE, LARGEST, STEP] = [0.2, 0.8, 2, 1.25];

/** What of a graph is drawn: constants are part of what reads them, index arithmetic may be. */
interface Drawn {
  readonly numbers: readonly number[];
  readonly edges: readonly (readonly [from: number, to: number])[];
}

/** How a graph is to be shown: `marked` nodes stand out. */
export interface Appearance {
  readonly marked: ReadonlySet<number>;
  readonly mark: "new" | "gone";
  readonly indices: boolean;
}

/** The nodes that are drawn, and the edges between them, which lead through those that are not. */
function drawn({ nodes, order }: Graph, indices: boolean): Drawn {
  const here = new Set(order);
  const isDrawn = ({ kind }: Node): boolean => kind !== "constant" && (indices || kind !== "index");
  const behind = new Map<number, ReadonlySet<number>>(); // what is drawn of a node, or of what it is made of
  const numbers: number[] = [];
  const edges: [number, number][] = [];
  for (const number of order) {
    const node = nodes[number];
    if (!node) continue;
    const from = new Set<number>();
    for (const source of node.sources) {
      if (here.has(source)) for (const found of behind.get(source) ?? []) from.add(found);
    }
    if (!isDrawn(node)) {
      behind.set(number, from);
      continue;
    }
    behind.set(number, new Set([number]));
    numbers.push(number);
    for (const source of from) edges.push([source, number]);
  }
  return { numbers, edges };
}

function svg<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Readonly<Record<string, string | number>>,
  ...content: Element[]
): SVGElementTagNameMap[K] {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...content);
  return made;
}

function text(className: string, y: number, content: string): SVGTextElement {
  const made = svg("text", { class: className, y, "text-anchor": "middle" });
  made.textContent = content;
  return made;
}

const shortened = (detail: string): string =>
  detail.length > MOST_CHARACTERS ? `${detail.slice(0, MOST_CHARACTERS - 1)}…` : detail;

/** A smooth line through points. */
function curve(points: readonly Point[]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  let path = `M${first.x},${first.y}`;
  rest.forEach(({ x, y }, i) => {
    const next = rest[i + 1];
    if (next) path += `Q${x},${y} ${(x + next.x) / 2},${(y + next.y) / 2}`;
    else path += `L${x},${y}`;
  });
  return path;
}

interface Shown {
  readonly element: SVGGElement;
  readonly place: Point;
  readonly sources: number[];
  readonly readers: number[];
  readonly lines: SVGPathElement[];
}

let views = 0;

export class GraphView {
  readonly element: HTMLElement;
  /** Buttons that make it smaller and larger. */
  readonly tools: HTMLElement;
  readonly #scroll = make("div", "graph-scroll");
  readonly #readout = make("p", "readout muted");
  readonly #worker: Worker;
  readonly #arrow = `arrow-${views++}`; // a drawing in a panel that is hidden lends no arrowheads to others
  #asked = 0;
  #wanted: { graph: Graph; drawn: Drawn; appearance: Appearance } | undefined;
  #drawing: SVGSVGElement | undefined;
  #size = { width: 1, height: 1 };
  #scale = 1;
  #shown = new Map<number, Shown>();

  constructor() {
    const zoom = (label: string, name: string, act: () => void): HTMLElement => {
      const made = make("button", "", label);
      made.setAttribute("aria-label", name);
      made.addEventListener("click", act);
      return made;
    };
    this.tools = make(
      "div",
      "graph-tools",
      zoom("−", "smaller", () => {
        this.#zoom(this.#scale / STEP);
      }),
      zoom("+", "larger", () => {
        this.#zoom(this.#scale * STEP);
      }),
      zoom("Fit", "fit the whole graph", () => {
        const height = parseFloat(getComputedStyle(this.#scroll).maxHeight);
        this.#zoom(Math.min(this.#scroll.clientWidth / this.#size.width, height / this.#size.height));
      }),
    );
    this.#readout.setAttribute("role", "status");
    this.element = make("div", "graph", this.#scroll, this.#readout);
    this.#scroll.addEventListener("keydown", (event) => {
      this.#walk(event);
    });
    this.#worker = new Worker(new URL("layout.mjs", document.baseURI), { type: "module" });
    this.#worker.addEventListener("message", (event: MessageEvent<LayoutAnswer>) => {
      if (event.data.number === this.#asked) this.#draw(event.data);
    });
    this.#worker.addEventListener("error", (event) => {
      this.#readout.textContent = `The graph could not be laid out: ${event.message || "layout.mjs did not load"}`;
    });
  }

  /** Draw a graph, soon. */
  show(graph: Graph, appearance: Appearance): void {
    const visible = drawn(graph, appearance.indices);
    this.#wanted = { graph, drawn: visible, appearance };
    const details = new Map(graph.order.map((number, i) => [number, graph.details[i] ?? ""]));
    const boxes: Box[] = visible.numbers.map((id) => {
      const node = graph.nodes[id];
      const detail = shortened(details.get(id) ?? "");
      const longest = Math.max(`${node?.op ?? ""} ${node?.dtype ?? ""}`.length, detail.length);
      return { id, width: longest * CHARACTER + 2 * PADDING, height: (detail ? 2 : 1) * LINE + PADDING };
    });
    const request: LayoutRequest = { number: ++this.#asked, boxes, edges: visible.edges };
    this.element.setAttribute("aria-busy", "true");
    this.#worker.postMessage(request);
  }

  #draw({ width, height, places, lines }: LayoutAnswer): void {
    if (!this.#wanted) return;
    const { graph, drawn: visible, appearance } = this.#wanted;
    const details = new Map(graph.order.map((number, i) => [number, graph.details[i] ?? ""]));
    const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "group" });
    drawing.setAttribute("aria-label", `graph of ${visible.numbers.length} nodes`);
    const arrow = svg("path", { d: "M0,0L8,4L0,8z" });
    const [markerWidth, markerHeight, refX, refY] = [8, 8, 7, 4];
    const marker = { id: this.#arrow, class: "arrow", markerWidth, markerHeight, refX, refY, orient: "auto" };
    drawing.append(svg("defs", {}, svg("marker", { ...marker, markerUnits: "userSpaceOnUse" }, arrow)));
    this.#shown = new Map();
    visible.numbers.forEach((number, i) => {
      const [node, place] = [graph.nodes[number], places[i]];
      if (!node || !place) return;
      this.#shown.set(number, {
        element: this.#node(number, node, place, details.get(number) ?? "", appearance),
        ...{ place, sources: [], readers: [], lines: [] },
      });
    });
    visible.edges.forEach(([from, to], i) => {
      const line = svg("path", {
        class: "edge",
        d: curve(lines[i] ?? []),
        "marker-end": `url(#${this.#arrow})`,
      });
      const [source, reader] = [this.#shown.get(from), this.#shown.get(to)];
      source?.lines.push(line);
      source?.readers.push(to);
      reader?.lines.push(line);
      reader?.sources.push(from);
      drawing.append(line);
    });
    for (const { element, readers } of this.#shown.values()) {
      if (readers.length > 1) element.classList.add("shared");
      drawing.append(element);
    }
    for (const [number, { element }] of this.#shown) {
      element.setAttribute("aria-label", this.#words(number));
      element.addEventListener("focus", () => {
        this.#select(number);
      });
      element.addEventListener("click", () => {
        element.focus();
      });
    }
    this.#shown.get(visible.numbers.at(-1) ?? -1)?.element.setAttribute("tabindex", "0");
    this.#drawing = drawing;
    this.#size = { width, height };
    this.#scroll.replaceChildren(drawing);
    this.#readout.textContent = "Choose a node; arrow keys walk along its edges.";
    // As wide as there is room, yet readable.
    this.#zoom(Math.min(1, Math.max(READABLE, this.#scroll.clientWidth / width)));
    const { x } = places[0] ?? { x: width / 2 };
    this.#scroll.scrollLeft = x * this.#scale - this.#scroll.clientWidth / 2;
    this.#scroll.scrollTop = 0;
    this.element.setAttribute("aria-busy", "false");
  }

  #node(number: number, node: Node, { x, y }: Point, detail: string, look: Appearance): SVGGElement {
    const short = shortened(detail);
    const [longest, height] = [
      Math.max(`${node.op} ${node.dtype}`.length, short.length),
      (short ? 2 : 1) * LINE + PADDING,
    ];
    const width = longest * CHARACTER + 2 * PADDING;
    const box = svg("rect", { x: -width / 2, y: -height / 2, width, height, rx: 6 });
    const title = text("op", short ? -3 : 4, node.op);
    const dtype = svg("tspan", { class: "dtype", dx: 6 });
    dtype.textContent = node.dtype;
    title.append(dtype);
    const mark = look.marked.has(number) ? ` ${look.mark}` : "";
    const group = svg(
      "g",
      { class: `node ${node.kind}${mark}`, transform: `translate(${x},${y})`, tabindex: -1, role: "button" },
      box,
      title,
    );
    if (short) group.append(text("detail", LINE - 3, short));
    return group;
  }

  /** A node in words, with all that is said of it. */
  #words(number: number): string {
    const { graph } = this.#wanted ?? {};
    const [node, shown] = [graph?.nodes[number], this.#shown.get(number)];
    if (!graph || !node || !shown) return "";
    const at = graph.order.indexOf(number);
    const names = (of: readonly number[]): string =>
      of.map((other) => `${graph.order.indexOf(other)} ${graph.nodes[other]?.op ?? ""}`).join(", ");
    const parts = [`${at} ${node.op} ${node.dtype}`, graph.details[at] ?? ""];
    if (shown.sources.length > 0) parts.push(`reads ${names(shown.sources)}`);
    if (shown.readers.length > 0) parts.push(`read by ${names(shown.readers)}`);
    return parts.filter(Boolean).join(" · ");
  }

  #select(number: number): void {
    for (const [other, { element, lines }] of this.#shown) {
      element.setAttribute("tabindex", other === number ? "0" : "-1");
      for (const line of lines) line.classList.remove("near");
    }
    for (const line of this.#shown.get(number)?.lines ?? []) line.classList.add("near");
    this.#readout.textContent = this.#words(number);
  }

  #zoom(scale: number): void {
    this.#scale = Math.min(LARGEST, Math.max(SMALLEST, scale));
    this.#drawing?.setAttribute("width", String(this.#size.width * this.#scale));
    this.#drawing?.setAttribute("height", String(this.#size.height * this.#scale));
  }

  /** Up to a source, down to a reader, left and right in a layer. */
  #walk(event: KeyboardEvent): void {
    const here = [...this.#shown.values()].find(({ element }) => element === document.activeElement);
    if (!here) return;
    const layer = [...this.#shown.entries()]
      .filter(([, { place }]) => Math.abs(place.y - here.place.y) < 1)
      .sort(([, a], [, b]) => a.place.x - b.place.x);
    const at = layer.findIndex(([, shown]) => shown === here);
    const next = {
      ArrowUp: here.sources[0],
      ArrowDown: here.readers[0],
      ArrowLeft: layer[at - 1]?.[0],
      ArrowRight: layer[at + 1]?.[0],
    }[event.key];
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault(); // a node at the edge does not scroll the page
    if (next !== undefined) this.#shown.get(next)?.element.focus();
  }
}
