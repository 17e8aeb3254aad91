/** The form of a model's inputs: sizes that the model leaves open, and what each input is filled with. */

import type { ModelInput, ModelPort } from "polygrad";

import { make } from "./dom";
import { typeText } from "./onnx_graph";

type Fill = "random" | "zeros" | "ones" | "numbers" | "image";

const FILLS: Readonly<Record<Fill, string>> = {
  random: "random numbers",
  zeros: "zeros",
  ones: "ones",
  numbers: "numbers…",
  image: "an image…",
};

/** How the 0 to 255 of a picture's channels become numbers. */
const SCALES: Readonly<Record<string, (byte: number, channel: number) => number>> = {
  "0 to 1": (byte) => byte / 255,
  "−1 to 1": (byte) => byte / 127.5 - 1,
  "0 to 255": (byte) => byte,
  "ImageNet's": (byte, channel) =>
    (byte / 255 - ([0.485, 0.456, 0.406][channel] ?? 0)) / ([0.229, 0.224, 0.225][channel] ?? 1),
};

/** The sizes that open axes have at first: of the first axis, and of others. */
const [FIRST, OTHER] = [1, 64];

/** More elements than this would be a mistake. */
const MOST_ELEMENTS = 2 ** 26;

function select(label: string, options: readonly string[]): HTMLSelectElement {
  const made = make("select");
  made.setAttribute("aria-label", label);
  for (const text of options) made.append(new Option(text, text));
  return made;
}

function filePicker(label: string): HTMLInputElement {
  const made = make("input");
  made.type = "file";
  made.accept = "image/*";
  made.setAttribute("aria-label", label);
  return made;
}

/** One input: its controls, and its value. */
class Row {
  readonly element: HTMLElement;
  readonly #port: ModelPort;
  readonly #fill = make("select");
  readonly #text = make("textarea");
  readonly #file: HTMLInputElement;
  readonly #scale: HTMLSelectElement;

  constructor(port: ModelPort) {
    this.#port = port;
    const isText = port.element === "string";
    const fills: Fill[] = isText ? ["numbers"] : ["random", "zeros", "ones", "numbers"];
    if (this.#channels !== undefined) fills.push("image");
    for (const fill of fills) this.#fill.append(new Option(isText ? "text" : FILLS[fill], fill));
    this.#fill.setAttribute("aria-label", `what ${port.name} is filled with`);
    this.#fill.addEventListener("change", () => {
      this.#update();
    });
    this.#text.rows = 8;
    this.#text.spellcheck = false;
    this.#text.setAttribute(
      "aria-label",
      isText ? `${port.name}, one text a line` : `the numbers of ${port.name}`,
    );
    this.#file = filePicker(`a picture for ${port.name}`);
    this.#scale = select(`the range of ${port.name}`, Object.keys(SCALES));
    const name = make(
      "span",
      "port",
      make("code", "", port.name),
      " ",
      make("span", "muted", typeText(port)),
    );
    const picture = make("span", "controls picture-controls", this.#file, this.#scale);
    this.element = make("div", "model-input", name, this.#fill, this.#text, picture);
    this.#update();
  }

  /** Show these numbers. */
  set numbers(text: string) {
    this.#fill.value = "numbers" satisfies Fill;
    this.#text.value = text;
    this.#update();
  }

  /** The axis of colours, for an input that could be a picture: (batch, colours, height, width), or colours last. */
  get #channels(): 1 | 3 | undefined {
    const { shape } = this.#port;
    if (shape?.length !== 4) return undefined;
    if (shape[1] === 1 || shape[1] === 3) return 1;
    return shape[3] === 1 || shape[3] === 3 ? 3 : undefined;
  }

  #update(): void {
    const fill = this.#fill.value as Fill;
    this.#text.hidden = fill !== "numbers";
    for (const picked of [this.#file, this.#scale]) {
      picked.hidden = fill !== "image";
      if (picked.parentElement) picked.parentElement.hidden = fill !== "image";
    }
  }

  /** What the input is, with `sizes` for its open axes. Rejects with an Error for what does not fit. */
  async value(sizes: ReadonlyMap<string, number>): Promise<ModelInput> {
    const { name, kind, element, dtype, shape } = this.#port;
    if (kind === "optional") return null;
    if (kind !== "tensor" || (dtype === null && element !== "string")) {
      throw new Error(
        `${name}: this page has no form for an input that is a ${kind === "tensor" ? String(element) : kind}`,
      );
    }
    if (element === "string") return this.#text.value.split("\n");
    const known = (shape ?? []).map((size, axis) =>
      typeof size === "number" ? size : (sizes.get(size ?? `${name}.${axis}`) ?? 1),
    );
    const count = known.reduce((a, b) => a * b, 1);
    if (count > MOST_ELEMENTS) throw new Error(`${name}: ${count} elements are more than this page makes`);
    const data = await this.#elements(count, known);
    return { data, shape: known, ...(dtype !== null && { dtype }) };
  }

  async #elements(count: number, shape: readonly number[]): Promise<Float32Array<ArrayBuffer>> {
    const { name, dtype } = this.#port;
    const isFloat = dtype?.includes("float") ?? true;
    const out = new Float32Array(count);
    switch (this.#fill.value as Fill) {
      case "random":
        return out.map(() => (isFloat ? Math.random() : Math.floor(Math.random() * 2)));
      case "zeros":
        return out;
      case "ones":
        return out.fill(1);
      case "numbers": {
        const words = this.#text.value.split(/[\s,[\]()]+/).filter(Boolean);
        const numbers = words.map(Number);
        const wrong = words.find((_, i) => Number.isNaN(numbers[i]));
        if (wrong !== undefined) throw new Error(`${name}: expected numbers, got ${JSON.stringify(wrong)}`);
        if (numbers.length !== count) {
          throw new Error(
            `${name}: expected ${count} numbers for (${shape.join(", ")}), got ${numbers.length}`,
          );
        }
        return Float32Array.from(numbers);
      }
      case "image":
        return this.#pixels(out, shape);
    }
  }

  /** The chosen picture, in the size that the input has; of the first of several alike. */
  async #pixels(
    out: Float32Array<ArrayBuffer>,
    shape: readonly number[],
  ): Promise<Float32Array<ArrayBuffer>> {
    const [file] = this.#file.files ?? [];
    if (file === undefined) throw new Error(`${this.#port.name}: choose a picture`);
    const [channelAxis, scale] = [this.#channels ?? 1, SCALES[this.#scale.value]];
    const spatial = channelAxis === 1 ? [shape[2], shape[3]] : [shape[1], shape[2]];
    const [height = 1, width = 1] = spatial;
    const channels = shape[channelAxis] ?? 1;
    const canvas = new OffscreenCanvas(width, height);
    const context = canvas.getContext("2d");
    if (context === null || scale === undefined) throw new Error("internal: expected a canvas");
    const bitmap = await createImageBitmap(file);
    context.drawImage(bitmap, 0, 0, width, height);
    const { data } = context.getImageData(0, 0, width, height);
    const area = width * height;
    for (let i = 0; i < out.length; i++) {
      const inside = i % (area * channels);
      const [pixel, channel] =
        channelAxis === 1
          ? [inside % area, Math.floor(inside / area)]
          : [Math.floor(inside / channels), inside % channels];
      const colour = (c: number): number => data[4 * pixel + c] ?? 0;
      const grey = 0.299 * colour(0) + 0.587 * colour(1) + 0.114 * colour(2);
      out[i] = scale(channels === 1 ? grey : colour(channel), channel);
    }
    return out;
  }
}

export class InputForm {
  readonly #host: HTMLElement;
  #rows = new Map<string, Row>();
  #sizes = new Map<string, HTMLInputElement>();

  constructor(host: HTMLElement) {
    this.#host = host;
  }

  /** Show the inputs of a model; `numbers` are what some of them hold at first. */
  show(ports: readonly ModelPort[], numbers: Readonly<Record<string, string>> = {}): void {
    this.#sizes = new Map();
    for (const { name, shape } of ports) {
      shape?.forEach((size, axis) => {
        if (typeof size === "number") return;
        const key = size ?? `${name}.${axis}`;
        if (this.#sizes.has(key)) return;
        const input = make("input");
        Object.assign(input, { type: "number", min: "1", value: String(axis === 0 ? FIRST : OTHER) });
        this.#sizes.set(key, input);
      });
    }
    const sizes = Array.from(this.#sizes, ([name, input]) => make("label", "size", name, input));
    this.#rows = new Map(ports.map((port) => [port.name, new Row(port)]));
    for (const [name, text] of Object.entries(numbers)) {
      const row = this.#rows.get(name);
      if (row) row.numbers = text;
    }
    this.#host.replaceChildren(
      ...(sizes.length > 0 ? [make("div", "controls", ...sizes)] : []),
      ...Array.from(this.#rows.values(), ({ element }) => element),
    );
  }

  /** The inputs as the form has them now. Rejects with an Error that says what does not fit. */
  async values(): Promise<Record<string, ModelInput>> {
    const sizes = new Map(
      Array.from(this.#sizes, ([name, { value }]) => [name, Math.max(1, Math.floor(Number(value)))]),
    );
    const found: Record<string, ModelInput> = {};
    for (const [name, row] of this.#rows) found[name] = await row.value(sizes);
    return found;
  }
}
