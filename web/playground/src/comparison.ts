/** One kernel in two ways, side by side: other Opts, or another device. */

import { besideElements, differenceOf, diffElements, hunksOf, lengthsOf } from "./diff_view";
import { button, element, html, make } from "./dom";
import { described, messageOf } from "./failures";
import type { Variant } from "./inspected";
import { timeOf } from "./timeline";

/** Finds a kernel as `opts` make it for a device; null: the Opts of the heuristics. */
export type FindVariant = (kernel: number, device: string, opts: string | null) => Promise<Variant>;

const DEVICES: Readonly<Record<string, string>> = {
  WASM: "WASM: WebAssembly",
  WEBGPU: "WEBGPU: WGSL",
  CC: "CC: C, as text",
};

const OPTS: Readonly<Record<string, string>> = {
  heuristics: "of the heuristics",
  none: "none",
  typed: "typed",
};

/** What is chosen on one side. */
class Side {
  readonly device: HTMLSelectElement;
  readonly #opts: HTMLSelectElement;
  readonly #text: HTMLInputElement;
  readonly #facts: HTMLElement;

  /** `changed` is told of choices. `suggest`: Opts for a device, which can be changed by hand. */
  constructor(
    readonly name: "left" | "right",
    opts: keyof typeof OPTS,
    changed: () => void,
    suggest: (device: string) => string,
  ) {
    const side = name;
    this.device = element(`${side}-device`, HTMLSelectElement);
    this.#opts = element(`${side}-opts`, HTMLSelectElement);
    this.#text = element(`${side}-opts-text`, HTMLInputElement);
    this.#facts = html(`${side}-facts`);
    for (const [name, label] of Object.entries(DEVICES)) this.device.append(new Option(label, name));
    for (const [name, label] of Object.entries(OPTS)) this.#opts.append(new Option(label, name));
    this.#opts.value = opts;
    this.device.addEventListener("change", changed);
    this.#opts.addEventListener("change", () => {
      this.#text.hidden = this.#opts.value !== "typed";
      this.#text.value ||= suggest(this.device.value);
      if (this.#text.hidden) changed();
      else this.#text.focus();
    });
    this.#text.hidden = true;
  }

  get isChosen(): boolean {
    return this.#opts.value === "heuristics";
  }

  /** The Opts as text; null: those of the heuristics. */
  get opts(): string | null {
    if (this.#opts.value === "heuristics") return null;
    return this.#opts.value === "none" ? "" : this.#text.value;
  }

  /** Say what came of it. */
  show({ opts, seconds }: Variant): void {
    const time = seconds === null ? "not timed: this page runs no such code" : timeOf(seconds);
    this.#facts.replaceChildren(make("strong", "", time), make("code", "", opts || "no Opts"));
  }

  clear(): void {
    this.#facts.replaceChildren();
  }
}

/** How two times compare, in words. */
function timesOf(left: Variant, right: Variant): string {
  if (left.seconds === null || right.seconds === null) return "";
  const ratio = right.seconds / left.seconds;
  const [factor, word] = ratio < 1 ? [1 / ratio, "faster"] : [ratio, "slower"];
  return factor < 1.05 ? "Both take the same time. " : `The right one is ${factor.toFixed(2)} × ${word}. `;
}

export class Comparison {
  readonly #find: FindVariant;
  readonly #left: Side;
  readonly #right: Side;
  readonly #note = html("compare-note");
  readonly #diff = html("diff");
  readonly #known = new Map<string, string>(); // the heuristics' Opts, by device
  #kernel: number | undefined;
  #device: string | undefined;
  #asked = 0;

  constructor(find: FindVariant) {
    this.#find = find;
    const changed = (): void => void this.#compare();
    const suggest = (device: string): string => this.#known.get(device) ?? "";
    this.#left = new Side("left", "heuristics", changed, suggest);
    this.#right = new Side("right", "none", changed, suggest);
    const form = element("compare", HTMLFormElement);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      changed();
    });
    html("comparison").addEventListener("toggle", changed);
  }

  /** Show another kernel, if the comparison is open. `device`: where it runs. */
  show(kernel: number, device: string): void {
    if (device !== this.#device) this.#left.device.value = this.#right.device.value = device;
    this.#device = device;
    this.#kernel = kernel;
    this.#known.clear();
    void this.#compare();
  }

  /** The kernels that were found are no more. */
  clear(): void {
    this.#kernel = undefined;
    this.#asked++;
    this.#showNothing();
  }

  #showNothing(): void {
    for (const side of [this.#left, this.#right]) side.clear();
    this.#note.textContent = "";
    this.#diff.replaceChildren();
  }

  #showCode(left: Variant, right: Variant): void {
    const [before, after] = [left.source, right.source];
    const isOneLanguage = this.#left.device.value === this.#right.device.value;
    const hunks = isOneLanguage ? hunksOf(before, after) : undefined;
    const words = hunks ? differenceOf(hunks) : lengthsOf(before, after);
    this.#note.textContent = `${timesOf(left, right)}${words}`;
    this.#diff.replaceChildren(...(hunks ? diffElements(hunks) : besideElements(before, after)));
  }

  /** The kernel as a side has it. Rejects with an error that names the side. */
  async #variant(kernel: number, side: Side): Promise<Variant> {
    const device = side.device.value;
    try {
      const found = await this.#find(kernel, device, side.opts);
      if (side.isChosen) this.#known.set(device, found.opts);
      return found;
    } catch (error) {
      throw new Error(`${side.name}: ${messageOf(error)}`, { cause: error });
    }
  }

  async #compare(): Promise<void> {
    const kernel = this.#kernel;
    if (kernel === undefined || !element("comparison", HTMLDetailsElement).open) return;
    const turn = ++this.#asked;
    const go = button("compare-go");
    this.#note.textContent = "compiling and timing…";
    go.disabled = true;
    try {
      const left = await this.#variant(kernel, this.#left);
      const right = await this.#variant(kernel, this.#right);
      if (turn !== this.#asked) return;
      this.#left.show(left);
      this.#right.show(right);
      this.#showCode(left, right);
    } catch (error) {
      if (turn !== this.#asked) return;
      this.#showNothing();
      this.#diff.append(make("div", "failure", described(error).message));
    } finally {
      go.disabled = false;
    }
  }
}
