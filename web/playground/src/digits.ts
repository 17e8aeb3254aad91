/** Draw a digit: a classifier learns to read 8x8 handwritten digits in the page, and guesses what is drawn. */

import type { Layer, Polygrad, Tensor } from "polygrad";

import { Chart } from "./chart";
import { button, element, html, make } from "./dom";
import { Drawing, SIDE } from "./drawing";
import { messageOf } from "./failures";
import { randomFrom } from "./random";
import { session } from "./session";
import { prepareTraining, type Training } from "./training";

const [BATCH, HIDDEN, EPOCHS, HELD_OUT] = [64, 128, 30, 360];
const PIXELS = SIDE * SIDE;

function shuffled(count: number, random: () => number): number[] {
  const order = Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [order[i], order[j]] = [order[j] ?? 0, order[i] ?? 0];
  }
  return order;
}

interface Data {
  readonly images: ArrayLike<number>;
  readonly labels: ArrayLike<number>;
  /** The rows of images to train on, and of those that are held out. */
  readonly training: readonly number[];
  readonly test: readonly number[];
}

async function loadData(pg: Polygrad): Promise<Data> {
  const { images, labels } = await pg.state.safeLoad("digits.safetensors");
  if (!images || !labels) throw new Error("digits.safetensors: expected the tensors images and labels");
  const pixels = (await images.data()) as Uint8Array;
  const labelBytes = (await labels.data()) as Uint8Array;
  pg.dispose(images, labels);
  const order = shuffled(labelBytes.length, randomFrom(0));
  return {
    images: pixels,
    labels: labelBytes,
    training: order.slice(HELD_OUT),
    test: order.slice(0, HELD_OUT),
  };
}

/** Copy an image, moved by up to one pixel, so that drawings need not be placed as the data is. */
function copyMoved(
  from: ArrayLike<number>,
  image: number,
  into: Float32Array,
  at: number,
  move: readonly [number, number],
) {
  for (let y = 0; y < SIDE; y++) {
    for (let x = 0; x < SIDE; x++) {
      const [sx, sy] = [x - move[0], y - move[1]];
      const inside = sx >= 0 && sy >= 0 && sx < SIDE && sy < SIDE;
      into[at * PIXELS + y * SIDE + x] = inside ? (from[image * PIXELS + sy * SIDE + sx] ?? 0) : 0;
    }
  }
}

class Classifier {
  readonly layers: Layer[];

  constructor({ nn }: Polygrad) {
    this.layers = [
      (x) => x.div(16),
      new nn.Linear(PIXELS, HIDDEN),
      (x) => x.relu(),
      new nn.Linear(HIDDEN, HIDDEN),
      (x) => x.relu(),
      new nn.Linear(HIDDEN, 10),
    ];
  }

  /** Scores [n, 10] of images [n, 64]. */
  forward(images: Tensor): Tensor {
    return images.sequential(this.layers);
  }
}

/** The ten bars. */
class Bars {
  readonly #rows: { readonly row: HTMLElement; readonly bar: HTMLElement; readonly number: HTMLElement }[] =
    [];

  constructor(host: HTMLElement) {
    for (let digit = 0; digit < 10; digit++) {
      const [bar, number] = [make("span", "bar"), make("span", "number")];
      const row = make("li", "", make("span", "digit", String(digit)), make("span", "track", bar), number);
      this.#rows.push({ row, bar, number });
      host.append(row);
    }
    this.show([]);
  }

  show(probabilities: ArrayLike<number>): void {
    const best = Math.max(...Array.from(probabilities));
    this.#rows.forEach(({ row, bar, number }, digit) => {
      const p = probabilities[digit] ?? 0;
      row.classList.toggle("best", p > 0 && p === best);
      bar.style.width = `${100 * p}%`;
      number.textContent = probabilities.length > 0 ? `${(100 * p).toFixed(0)}%` : "–";
    });
  }
}

/** The image as the classifier sees it, eight pixels wide. */
class SmallImage {
  readonly #canvas = element("small", HTMLCanvasElement);

  show(pixels: ArrayLike<number>): void {
    const context = this.#canvas.getContext("2d");
    if (context === null) return;
    context.clearRect(0, 0, SIDE, SIDE);
    context.fillStyle = getComputedStyle(this.#canvas).color;
    for (let i = 0; i < PIXELS; i++) {
      context.globalAlpha = (pixels[i] ?? 0) / 16;
      context.fillRect(i % SIDE, Math.floor(i / SIDE), 1, 1);
    }
  }
}

/** The left half of the panel: a drawing, and what the newest model takes it for. */
class Guesser {
  readonly #guess = html("guess");
  readonly #small = new SmallImage();
  readonly #bars = new Bars(html("bars"));
  readonly #fail: (error: unknown) => void;
  readonly #drawing = new Drawing(element("drawing", HTMLCanvasElement), () => {
    this.#shown = undefined;
    void this.update();
  });
  #model: Classifier | undefined;
  #isGuessing = false;
  #requests = 0; // how often the drawing or the model changed
  #shown: Float32Array<ArrayBuffer> | undefined; // an image of the data, in place of a drawing

  /** `fail` is told of errors. */
  constructor(fail: (error: unknown) => void) {
    this.#fail = fail;
  }

  /** From now on this model guesses. */
  use(model: Classifier): void {
    this.#model = model;
  }

  clear(): void {
    this.#shown = undefined;
    this.#drawing.clear();
    this.#showNothing();
  }

  /** Show an image of the data in place of a drawing. */
  show(image: Float32Array<ArrayBuffer>): void {
    this.#shown = image;
    this.#drawing.show(image);
    void this.update();
  }

  /** Guess the digit. Requests that come during a guess are answered by one more guess. */
  async update(): Promise<void> {
    this.#requests++;
    if (this.#isGuessing) return;
    this.#isGuessing = true;
    try {
      let answered: number;
      do {
        answered = this.#requests;
        await this.#answer();
      } while (answered !== this.#requests);
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#isGuessing = false;
    }
  }

  async #answer(): Promise<void> {
    if (this.#drawing.isEmpty()) {
      this.#showNothing();
      return;
    }
    const pixels = this.#shown?.slice() ?? this.#drawing.pixels();
    this.#small.show(pixels);
    const model = this.#model;
    if (model === undefined) return;
    const pg = await session();
    const scores = pg.scope(() => model.forward(new pg.Tensor(pixels, { shape: [1, PIXELS] })).softmax(1));
    const probabilities = (await scores.data()) as Float32Array;
    scores.dispose();
    if (this.#drawing.isEmpty()) return; // it was cleared meanwhile
    this.#bars.show(probabilities);
    this.#guess.textContent = String(probabilities.indexOf(Math.max(...probabilities)));
  }

  #showNothing(): void {
    this.#bars.show([]);
    this.#guess.textContent = "?";
    this.#small.show([]);
  }
}

/** The digits that are held out, and how many of them a model reads. */
class HeldOut {
  readonly #pg: Polygrad;
  readonly #images: Tensor;
  readonly #labels: Tensor;

  constructor(pg: Polygrad, { images, labels, test }: Data) {
    const pixels = new Float32Array(test.length * PIXELS);
    test.forEach((row, i) => {
      copyMoved(images, row, pixels, i, [0, 0]);
    });
    this.#pg = pg;
    this.#images = new pg.Tensor(pixels, { shape: [test.length, PIXELS] });
    this.#labels = new pg.Tensor(Int32Array.from(test, (row) => labels[row] ?? 0));
  }

  /** The share of digits that `model` reads, in percent. */
  async accuracyOf(model: Classifier): Promise<number> {
    const right = this.#pg.scope(() =>
      model.forward(this.#images).argmax(1).eq(this.#labels).cast("float32").mean(),
    );
    const share = await right.item();
    right.dispose();
    return 100 * share;
  }

  dispose(): void {
    this.#pg.dispose(this.#images, this.#labels);
  }
}

/** Batches of digits, half of them moved a little. */
class Batches {
  readonly x = new Float32Array(BATCH * PIXELS);
  readonly y = new Int32Array(BATCH);
  readonly #data: Data;
  readonly #random = randomFrom(1);

  constructor(data: Data) {
    this.#data = data;
  }

  /** All batches of a run, as numbers from 1: `x` and `y` hold one after the other. */
  *all(): Generator<{ readonly epoch: number; readonly step: number }> {
    const { training } = this.#data;
    let step = 0;
    for (let epoch = 1; epoch <= EPOCHS; epoch++) {
      const order = shuffled(training.length, this.#random).map((i) => training[i] ?? 0);
      for (let at = 0; at + BATCH <= order.length; at += BATCH) {
        this.#fill(order.slice(at, at + BATCH));
        yield { epoch, step: ++step };
      }
    }
  }

  #fill(rows: readonly number[]): void {
    const random = this.#random;
    rows.forEach((row, i) => {
      const move = [Math.floor(random() * 3) - 1, Math.floor(random() * 3) - 1] as const;
      copyMoved(this.#data.images, row, this.x, i, random() < 0.5 ? [0, 0] : move);
      this.y[i] = this.#data.labels[row] ?? 0;
    });
  }
}

/** The panel. */
class Digits {
  readonly #train = button("train-digits");
  readonly #note = html("digits-note");
  readonly #chart = new Chart(html("digits-chart"), [
    { label: "loss", color: "--accent-solid", scale: "value" },
    { label: "accuracy", color: "--second-solid", scale: "percent" },
  ]);
  readonly #guesser = new Guesser((error) => {
    this.#note.textContent = messageOf(error);
  });
  #data: Data | undefined;
  #isTraining = false;

  constructor() {
    this.#train.addEventListener("click", () => void this.start());
    button("clear-drawing").addEventListener("click", () => {
      this.#guesser.clear();
    });
    button("show-digit").addEventListener("click", () => {
      this.#showOneOfTheData();
    });
  }

  /** Train a new model; if one trains, end that. */
  async start(): Promise<void> {
    if (this.#isTraining) {
      this.#isTraining = false; // the loop ends with its step
      this.#train.disabled = true; // until then
      return;
    }
    this.#isTraining = true;
    this.#train.textContent = "Stop";
    this.#chart.clear();
    try {
      this.#note.textContent = "starting…";
      const pg = await session();
      this.#data ??= await loadData(pg);
      this.#note.textContent = "compiling the training step…";
      this.#note.textContent = await this.#learn(pg, this.#data);
    } catch (error) {
      this.#note.textContent = messageOf(error);
    } finally {
      this.#isTraining = false;
      this.#train.disabled = false;
      this.#train.textContent = "Train again";
    }
  }

  #showOneOfTheData(): void {
    const data = this.#data;
    if (data === undefined) return;
    const row = data.test[Math.floor(Math.random() * data.test.length)] ?? 0;
    const image = new Float32Array(PIXELS);
    copyMoved(data.images, row, image, 0, [0, 0]);
    this.#guesser.show(image);
  }

  async #learn(pg: Polygrad, data: Data): Promise<string> {
    pg.Tensor.manualSeed(0);
    const model = new Classifier(pg);
    this.#guesser.use(model);
    const optimizer = new pg.optim.Adam(pg.nn.state.getParameters(model), { lr: 0.002 });
    const batches = new Batches(data);
    const step = await prepareTraining(pg, model, optimizer, batches.x, batches.y);
    const heldOut = new HeldOut(pg, data);
    await this.#runEpochs(step, batches, () => heldOut.accuracyOf(model));
    const accuracy = await heldOut.accuracyOf(model);
    void this.#guesser.update();
    step.dispose();
    heldOut.dispose();
    pg.dispose(optimizer);
    return `trained: ${accuracy.toFixed(1)}% of ${data.test.length} unseen digits are read right. Draw one.`;
  }

  async #runEpochs(step: Training, batches: Batches, measure: () => Promise<number>): Promise<void> {
    const started = performance.now();
    let accuracy = await measure();
    for (const { epoch, step: number } of batches.all()) {
      if (!this.#isTraining) return;
      const loss = await step.run();
      const isMeasured = number % 20 === 0;
      if (isMeasured) accuracy = await measure();
      this.#chart.add(number, loss, isMeasured || number === 1 ? accuracy : null);
      if (!isMeasured) continue;
      void this.#guesser.update();
      const speed = (number / (performance.now() - started)) * 1e3;
      this.#note.textContent =
        `epoch ${epoch} of ${EPOCHS} · loss ${loss.toFixed(3)} · ` +
        `accuracy ${accuracy.toFixed(1)}% · ${speed.toFixed(0)} steps/s`;
    }
  }
}

export function startDigits(): void {
  void new Digits().start();
}
