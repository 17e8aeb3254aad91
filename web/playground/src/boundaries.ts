/** Decision boundaries: a small network learns to tell points of two classes apart, and is exported as a file. */

import type { Polygrad, Tensor } from "polygrad";

import { DATA_SETS, pointsOf, type Points } from "./boundary_data";
import { ACTIVATIONS, Network, OPTIMIZERS, optimizerOf, type Settings } from "./boundary_model";
import { placesOfPlane, PlaneView, SIDE } from "./boundary_view";
import { Chart } from "./chart";
import { button, element, html } from "./dom";
import { messageOf } from "./failures";
import { session } from "./session";
import { prepareTraining, type Training } from "./training";

const [MAX_STEPS, STEPS_A_FRAME] = [4000, 10];
const FILE = "boundary.pgrd";

/** The controls. What cannot change while a network trains makes a new one. */
class Controls {
  readonly #form = element("boundary-form", HTMLFormElement);

  /** `changed` is told of each change. */
  constructor(changed: () => void) {
    this.#fill("boundary-data", Object.keys(DATA_SETS));
    this.#fill("boundary-activation", ACTIVATIONS);
    this.#fill("boundary-optimizer", OPTIMIZERS);
    this.#form.addEventListener("change", changed);
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
    });
  }

  #fill(id: string, names: readonly string[]): void {
    element(id, HTMLSelectElement).append(...names.map((name) => new Option(name, name)));
  }

  #choice<T extends string>(id: string, names: readonly T[]): T {
    const { value } = element(id, HTMLSelectElement);
    const found = names.find((name) => name === value);
    if (found === undefined) throw new Error(`internal: expected one of ${names.join(", ")}, got ${value}`);
    return found;
  }

  get settings(): Settings {
    const number = (id: string): number => Number(element(id, HTMLSelectElement).value);
    return {
      data: element("boundary-data", HTMLSelectElement).value,
      noise: number("boundary-noise"),
      layers: number("boundary-layers"),
      width: number("boundary-width"),
      activation: this.#choice("boundary-activation", ACTIVATIONS),
      optimizer: this.#choice("boundary-optimizer", OPTIMIZERS),
      learningRate: number("boundary-rate"),
      weightDecay: number("boundary-decay"),
    };
  }
}

/** A network in training, and what it sees in the plane. */
class Learner {
  readonly network: Network;
  readonly #pg: Polygrad;
  readonly #points: Points;
  readonly #plane: Tensor;
  readonly #look: (places: Tensor) => Tensor;
  readonly #settings: Settings;

  constructor(pg: Polygrad, settings: Settings, points: Points) {
    pg.Tensor.manualSeed(0);
    this.#pg = pg;
    this.#settings = settings;
    this.#points = points;
    this.network = new Network(pg, settings);
    this.#plane = new pg.Tensor(placesOfPlane(), { shape: [SIDE * SIDE, 2] });
    this.#look = pg.TinyJit((places: Tensor) => this.network.forward(places).softmax(1).at(pg.slice(), 1));
  }

  /** The step; its optimizer is released with it. */
  async prepare(): Promise<Training> {
    const optimizer = optimizerOf(this.#pg, this.network, this.#settings);
    const { places, classes } = this.#points;
    const step = await prepareTraining(this.#pg, this.network, optimizer, places, classes);
    return {
      run: () => step.run(),
      dispose: () => {
        step.dispose();
        this.#pg.dispose(optimizer);
      },
    };
  }

  /** The probability of the second class in each place of the plane. */
  async look(): Promise<Float32Array> {
    return (await this.#look(this.#plane).data()) as Float32Array;
  }

  /** The share of the points that are told apart, in percent. */
  async accuracy(): Promise<number> {
    const { Tensor } = this.#pg;
    const { places, classes } = this.#points;
    const right = this.#pg.scope(() => {
      const guesses = this.network
        .forward(new Tensor(places.slice(), { shape: [classes.length, 2] }))
        .argmax(1);
      return guesses.eq(new Tensor(classes.slice())).cast("float32").mean();
    });
    const share = await right.item();
    right.dispose();
    return 100 * share;
  }

  dispose(): void {
    this.#pg.dispose(this.network, this.#plane);
  }
}

/** The right half: the exported file, run by `polygrad/runtime`, without Python. */
class ExportedModel {
  readonly #view = new PlaneView("exported-plane");
  readonly #card = html("exported");
  readonly #note = html("exported-note");
  readonly #link = element("download-model", HTMLAnchorElement);

  /** Show what the file computes, beside what the network does. */
  async show(bytes: Uint8Array<ArrayBuffer>, points: Points, expected: ArrayLike<number>): Promise<void> {
    URL.revokeObjectURL(this.#link.href);
    this.#link.href = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
    this.#link.download = FILE;
    this.#link.textContent = `Download ${FILE} (${(bytes.length / 1024).toFixed(1)} KB)`;
    this.#card.hidden = false;
    const { load } = await import("polygrad/runtime");
    const model = await load(bytes.slice(), { threads: 1 });
    const started = performance.now();
    const { probability } = await model.run({ points: { data: placesOfPlane(), shape: [SIDE * SIDE, 2] } });
    const milliseconds = performance.now() - started;
    if (probability === undefined) throw new Error(`internal: expected ${FILE} to give probabilities`);
    this.#view.showPoints(points);
    this.#view.showPlane(probability.data as Float32Array);
    const differences = Array.from(probability.data as Float32Array, (p, i) =>
      Math.abs(p - (expected[i] ?? NaN)),
    );
    this.#note.textContent =
      `${(SIDE * SIDE).toLocaleString("en")} places in ${milliseconds.toFixed(1)} ms, without Python; ` +
      `at most ${Math.max(...differences).toExponential(0)} from the network beside it.`;
  }

  hide(): void {
    this.#card.hidden = true;
  }
}

/** The panel. */
class Boundaries {
  readonly #train = button("train-boundary");
  readonly #export = button("export-boundary");
  readonly #note = html("boundary-note");
  readonly #view = new PlaneView("plane");
  readonly #exported = new ExportedModel();
  readonly #chart = new Chart(html("boundary-chart"), [
    { label: "loss", color: "--accent-solid", scale: "value" },
    { label: "accuracy", color: "--second-solid", scale: "percent" },
  ]);
  readonly #controls = new Controls(() => {
    this.restart();
  });
  #points = this.#newPoints();
  #learner: Learner | undefined;
  #turn = 0; // of training or an export; an older one ends
  #running: Promise<void> = Promise.resolve(); // the last turn; one begins when the one before has ended
  #isTraining = false;

  constructor() {
    this.#train.addEventListener("click", () => {
      if (this.#isTraining) this.#stop();
      else this.restart();
    });
    this.#export.addEventListener("click", () => {
      this.#exportModel();
    });
  }

  #newPoints(): Points {
    const { data, noise } = this.#controls.settings;
    const points = pointsOf(data, noise);
    this.#view.showPoints(points);
    return points;
  }

  #showTraining(isTraining: boolean): void {
    this.#isTraining = isTraining;
    this.#train.textContent = isTraining ? "Stop" : "Train again";
  }

  /** Train a new network with what is chosen now. */
  restart(): void {
    const turn = ++this.#turn;
    this.#points = this.#newPoints();
    this.#chart.clear();
    this.#exported.hide();
    this.#export.disabled = true;
    this.#note.textContent = "compiling the training step…";
    this.#showTraining(true);
    this.#running = this.#running.then(() => this.#trainNew(turn));
  }

  #stop(): void {
    this.#turn++;
    this.#showTraining(false);
  }

  async #trainNew(turn: number): Promise<void> {
    if (turn !== this.#turn) return;
    try {
      await this.#learn(await session(), turn);
    } catch (error) {
      this.#note.textContent = messageOf(error);
    } finally {
      if (turn === this.#turn) this.#showTraining(false);
    }
  }

  async #learn(pg: Polygrad, turn: number): Promise<void> {
    this.#learner?.dispose();
    const learner = (this.#learner = new Learner(pg, this.#controls.settings, this.#points));
    const step = await learner.prepare();
    try {
      if (turn === this.#turn) this.#export.disabled = false;
      await this.#runSteps(learner, step, turn);
    } finally {
      step.dispose();
    }
  }

  async #runSteps(learner: Learner, step: Training, turn: number): Promise<void> {
    const { size } = learner.network;
    for (let done = 0; done < MAX_STEPS && turn === this.#turn;) {
      let loss = 0;
      for (let i = 0; i < STEPS_A_FRAME; i++, done++) loss = await step.run();
      const [plane, accuracy] = [await learner.look(), await learner.accuracy()];
      if (turn !== this.#turn) break;
      this.#view.showPlane(plane);
      this.#chart.add(done, loss, accuracy);
      this.#note.textContent =
        `${size} parameters · step ${done} of ${MAX_STEPS} · loss ${loss.toFixed(3)} · ` +
        `${accuracy.toFixed(0)}% right`;
    }
  }

  /** Export the network as it is: training ends, so that the file and the network are the same. */
  #exportModel(): void {
    const learner = this.#learner;
    if (learner === undefined) return;
    this.#stop();
    this.#export.disabled = true;
    const turn = this.#turn;
    this.#running = this.#running.then(() => this.#showExported(learner, turn));
  }

  async #showExported(learner: Learner, turn: number): Promise<void> {
    if (turn !== this.#turn) return; // a new network is trained instead
    try {
      const pg = await session();
      const expected = await learner.look();
      const bytes = await learner.network.export(pg);
      if (turn !== this.#turn) return;
      this.#view.showPlane(expected);
      await this.#exported.show(bytes, this.#points, expected);
    } catch (error) {
      this.#note.textContent = messageOf(error);
    } finally {
      if (turn === this.#turn) this.#export.disabled = false;
    }
  }
}

export function startBoundaries(): void {
  new Boundaries().restart();
}
