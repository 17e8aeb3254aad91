/** A kernel before and after each pass, to step through: as a graph, as text, and what came of it in the end. */

import { Choice, make } from "./dom";
import { GraphView } from "./graph";
import { graphAt, KINDS, type Explained } from "./inspected";

const [GRAPH, TEXT, CODE] = [0, 1, 2];
const [BEFORE, AFTER] = [0, 1];

export class Passes {
  readonly element = make("div", "passes");
  readonly #graph = new GraphView();
  readonly #listing = make("pre", "listing");
  readonly #note = make("p", "muted hint");
  readonly #list = make("div", "pass-list");
  readonly #legend = make("ul", "legend");
  readonly #views: Choice;
  readonly #sides: Choice;
  readonly #indices = make("input");
  readonly #indicesLabel: HTMLElement;
  #explained: Explained | undefined;
  #at = 0;

  constructor() {
    const changed = (): void => {
      this.#update();
    };
    this.#views = new Choice("segments", "what to show", [["Graph"], ["Text"], ["Code"]], changed);
    this.#sides = new Choice("segments", "before or after the pass", [["Before"], ["After"]], changed);
    this.#views.choose(GRAPH);
    this.#sides.choose(AFTER);
    this.#indices.type = "checkbox";
    this.#indices.addEventListener("change", changed);
    this.#indicesLabel = make("label", "check", this.#indices, "index arithmetic");
    for (const kind of KINDS) this.#legend.append(make("li", kind, kind));
    this.#legend.append(make("li", "new", "new"), make("li", "gone", "replaced"));
    this.#listing.tabIndex = 0;
    const controls = make(
      "div",
      "controls",
      this.#views.element,
      this.#sides.element,
      this.#indicesLabel,
      this.#graph.tools,
    );
    const view = make("div", "pass-view", this.#note, this.#graph.element, this.#legend, this.#listing);
    this.element.append(controls, make("div", "pass-columns", this.#list, view));
  }

  /** Show another kernel, at the pass that was looked at before. */
  show(explained: Explained): void {
    this.#explained = explained;
    const counts = explained.stages.map((stage, i) => {
      const label = make("span", "pass-name", stage.name || "as scheduled");
      const before = i > 0 ? graphAt(explained, i - 1).order.length : 0;
      const nodes = stage.changed ? stage.order.length : 0;
      const size = !stage.changed ? "no change" : i === 0 ? `${nodes} nodes` : `${before} → ${nodes}`;
      return [label, make("span", stage.changed ? "size" : "size same", size)];
    });
    const choice = new Choice("options", "pass", counts, (chosen) => {
      this.#at = chosen;
      this.#update();
    });
    this.#at = Math.min(this.#at, explained.stages.length - 1);
    choice.choose(this.#at);
    this.#list.replaceChildren(choice.element);
    this.#update();
  }

  #update(): void {
    const [explained, at] = [this.#explained, this.#at];
    if (!explained) return;
    const [view, stage] = [this.#views.chosen, explained.stages[at]];
    const side = at === 0 ? AFTER : this.#sides.chosen;
    const [before, after] = [graphAt(explained, Math.max(at - 1, 0)), graphAt(explained, at)];
    const graph = side === BEFORE ? before : after;
    this.#list.hidden = view === CODE;
    this.#note.hidden = view === CODE;
    this.#sides.element.disabled = view === CODE || at === 0 || stage?.changed === false;
    this.#indicesLabel.hidden = view !== GRAPH;
    for (const shown of [this.#graph.element, this.#graph.tools, this.#legend]) shown.hidden = view !== GRAPH;
    this.#listing.hidden = view === GRAPH;
    if (at === 0) this.#note.textContent = "The kernel as the scheduler made it.";
    else if (stage?.changed === false) this.#note.textContent = `${stage.name} finds nothing to change here.`;
    else this.#note.textContent = `${side === BEFORE ? "Before" : "After"} ${stage?.name ?? ""}.`;
    if (view === CODE) this.#listing.textContent = explained.source;
    if (view === TEXT) this.#listing.textContent = graph.listing;
    if (view === GRAPH) {
      const other = new Set((side === BEFORE ? after : before).order);
      const marked = new Set(at === 0 ? [] : graph.order.filter((number) => !other.has(number)));
      const mark = side === BEFORE ? "gone" : "new";
      this.#graph.show(graph, { marked, mark, indices: this.#indices.checked });
    }
  }
}
