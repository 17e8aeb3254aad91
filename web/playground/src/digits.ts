/** Draw a digit: a classifier learns to read 8x8 handwritten digits in the page, and guesses what is drawn. */

import type { Layer, Polygrad, Tensor } from "polygrad";

import { Chart } from "./chart";
import { button, element, html, make } from "./dom";
import { Drawing, SIDE } from "./drawing";
import { messageOf } from "./failures";
import { session } from "./session";
import { prepareTraining } from "./training";

const [BATCH, HIDDEN, EPOCHS, HELD_OUT] = [64, 128, 30, 360];
const PIXELS = SIDE * SIDE;

/** A generator of numbers from 0 to 1, the same in each visit (linear congruential, with Numerical Recipes' constants). */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

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

export function startDigits(): void {
  const [train, clear, sample] = [button("train-digits"), button("clear-drawing"), button("show-digit")];
  const [guessText, note] = [html("guess"), html("digits-note")];
  const small = element("small", HTMLCanvasElement);
  const bars = new Bars(html("bars"));
  const chart = new Chart(html("digits-chart"), [
    { label: "loss", color: "--accent-solid", scale: "value" },
    { label: "accuracy", color: "--second-solid", scale: "percent" },
  ]);
  let model: Classifier | undefined;
  let data: Data | undefined;
  let training = false;
  let guessing = false;
  let requests = 0; // how often the drawing changed
  let shown: Float32Array<ArrayBuffer> | undefined; // an image of the data, in place of a drawing

  const drawing = new Drawing(element("drawing", HTMLCanvasElement), () => {
    shown = undefined;
    void guess();
  });

  const showSmall = (pixels: ArrayLike<number>): void => {
    const context = small.getContext("2d");
    if (context === null) return;
    context.clearRect(0, 0, SIDE, SIDE);
    context.fillStyle = getComputedStyle(small).color;
    for (let i = 0; i < PIXELS; i++) {
      context.globalAlpha = (pixels[i] ?? 0) / 16;
      context.fillRect(i % SIDE, Math.floor(i / SIDE), 1, 1);
    }
  };

  const nothing = (): void => {
    bars.show([]);
    guessText.textContent = "?";
    showSmall([]);
  };

  /** Guess the digit. Requests that come during a guess are answered by one more guess. */
  async function guess(): Promise<void> {
    requests++;
    if (guessing) return;
    guessing = true;
    let answered: number;
    try {
      do {
        answered = requests;
        if (drawing.isEmpty()) {
          nothing();
          continue;
        }
        const pixels = shown?.slice() ?? drawing.pixels();
        showSmall(pixels);
        if (model === undefined) continue;
        const pg = await session();
        const classifier: Classifier = model;
        const scores = pg.scope(() =>
          classifier.forward(new pg.Tensor(pixels, { shape: [1, PIXELS] })).softmax(1),
        );
        const probabilities = (await scores.data()) as Float32Array;
        scores.dispose();
        if (drawing.isEmpty()) continue;
        bars.show(probabilities);
        guessText.textContent = String(probabilities.indexOf(Math.max(...probabilities)));
      } while (answered !== requests);
    } catch (error) {
      note.textContent = messageOf(error);
    } finally {
      guessing = false;
    }
  }

  const isTraining = (): boolean => training;

  async function learn(pg: Polygrad, { images, labels, training: rows, test }: Data): Promise<string> {
    const { Tensor, nn, optim } = pg;
    Tensor.manualSeed(0);
    const random = randomFrom(1);
    const classifier = (model = new Classifier(pg));
    const optimizer = new optim.Adam(nn.state.getParameters(classifier), { lr: 0.002 });
    const x = new Float32Array(BATCH * PIXELS);
    const y = new Int32Array(BATCH);
    const step = await prepareTraining(pg, classifier, optimizer, x, y);
    const testX = new Float32Array(test.length * PIXELS);
    test.forEach((row, i) => {
      copyMoved(images, row, testX, i, [0, 0]);
    });
    const testImages = new Tensor(testX, { shape: [test.length, PIXELS] });
    const testLabels = new Tensor(Int32Array.from(test, (row) => labels[row] ?? 0));
    const measure = async (): Promise<number> => {
      const right = pg.scope(() =>
        classifier.forward(testImages).argmax(1).eq(testLabels).cast("float32").mean(),
      );
      return 100 * (await right.item());
    };
    const started = performance.now();
    let accuracy = await measure();
    let done = 0;
    for (let epoch = 1; epoch <= EPOCHS && isTraining(); epoch++) {
      const order = shuffled(rows.length, random).map((i) => rows[i] ?? 0);
      for (let at = 0; at + BATCH <= order.length && isTraining(); at += BATCH) {
        for (let i = 0; i < BATCH; i++) {
          const row = order[at + i] ?? 0;
          const move = [Math.floor(random() * 3) - 1, Math.floor(random() * 3) - 1] as const;
          copyMoved(images, row, x, i, random() < 0.5 ? [0, 0] : move);
          y[i] = labels[row] ?? 0;
        }
        const loss = await step.run();
        const last = ++done % 20 === 0;
        if (last) accuracy = await measure();
        chart.add(done, loss, last || done === 1 ? accuracy : null);
        if (!last) continue;
        void guess();
        const speed = (done / (performance.now() - started)) * 1e3;
        note.textContent =
          `epoch ${epoch} of ${EPOCHS} · loss ${loss.toFixed(3)} · ` +
          `accuracy ${accuracy.toFixed(1)}% · ${speed.toFixed(0)} steps/s`;
      }
    }
    accuracy = await measure();
    void guess();
    step.dispose();
    pg.dispose(optimizer, testImages, testLabels);
    return `trained: ${accuracy.toFixed(1)}% of ${test.length} unseen digits are read right. Draw one.`;
  }

  const start = async (): Promise<void> => {
    if (training) {
      training = false; // the loop ends with its step
      return;
    }
    training = true;
    train.textContent = "Stop";
    chart.clear();
    try {
      note.textContent = "starting…";
      const pg = await session();
      data ??= await loadData(pg);
      note.textContent = "compiling the training step…";
      note.textContent = await learn(pg, data);
    } catch (error) {
      note.textContent = messageOf(error);
    } finally {
      training = false;
      train.textContent = "Train again";
    }
  };

  train.addEventListener("click", () => void start());
  clear.addEventListener("click", () => {
    shown = undefined;
    drawing.clear();
    nothing();
  });
  sample.addEventListener("click", () => {
    if (data === undefined) return;
    const row = data.test[Math.floor(Math.random() * data.test.length)] ?? 0;
    shown = new Float32Array(PIXELS);
    copyMoved(data.images, row, shown, 0, [0, 0]);
    drawing.show(shown);
    void guess();
  });
  void start();
}
