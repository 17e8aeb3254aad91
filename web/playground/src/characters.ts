/**
 * A character model that trains and writes as you watch: an embedding of the last characters, one hidden layer, scores
 * of the next one (Bengio et al., "A Neural Probabilistic Language Model", 2003, with letters for words). It reads
 * Shakespeare's sonnets, half of them, in modern spelling.
 */

import type { Polygrad, Tensor } from "polygrad";

import { Chart } from "./chart";
import corpus from "../../../examples/data/sonnets.txt";
import { button, element, html, make } from "./dom";
import { messageOf } from "./failures";
import { session } from "./session";
import { prepareTraining, type Training } from "./training";

const [CONTEXT, EMBEDDED, HIDDEN, BATCH] = [10, 16, 256, 128];
const [SAMPLE, MAX_SAMPLES, SECOND] = [160, 12, 1000];
const BARS = 8;

/** A text as numbers, and the characters of these numbers, in the order of their first use. */
function encode(text: string): [codes: Int32Array, alphabet: string[]] {
  const codes = new Int32Array(text.length);
  const numbers = new Map<string, number>();
  for (let i = 0; i < text.length; i++) {
    const character = text.charAt(i);
    const number = numbers.get(character) ?? numbers.size;
    numbers.set(character, number);
    codes[i] = number;
  }
  return [codes, [...numbers.keys()]];
}

const [codes, alphabet] = encode(corpus);

class Writer {
  readonly embedding;
  readonly hidden;
  readonly out;

  /** Of texts of so many different characters. */
  constructor({ nn }: Polygrad, characters: number) {
    this.embedding = new nn.Embedding(characters, EMBEDDED);
    this.hidden = new nn.Linear(CONTEXT * EMBEDDED, HIDDEN);
    this.out = new nn.Linear(HIDDEN, characters);
  }

  /** Scores [n, characters] of what follows contexts [n, CONTEXT]. */
  forward(contexts: Tensor): Tensor {
    const embedded = this.embedding.forward(contexts).reshape(-1, CONTEXT * EMBEDDED);
    return this.out.forward(this.hidden.forward(embedded).relu());
  }
}

/** Probabilities from scores. The lower the temperature, the likelier is the one with the best score. */
function probabilitiesOf(scores: ArrayLike<number>, temperature: number): number[] {
  const list = Array.from(scores);
  const greatest = Math.max(...list);
  const weights = list.map((score) => Math.exp((score - greatest) / temperature));
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((weight) => weight / sum);
}

/** Draw an index by its probability. */
function draw(probabilities: readonly number[]): number {
  let remaining = Math.random();
  return Math.max(
    probabilities.findIndex((p) => (remaining -= p) <= 0),
    0,
  );
}

/** A character as a reader sees it. */
function visible(character: string): string {
  return { " ": "␣", "\n": "⏎" }[character] ?? character;
}

/** A trained model, or one that trains: it scores the characters that follow others. */
class Reader {
  readonly #pg: Polygrad;
  readonly #scores: (context: Tensor) => Tensor;

  constructor(pg: Polygrad, model: Writer) {
    this.#pg = pg;
    this.#scores = pg.TinyJit((context: Tensor) => model.forward(context));
  }

  /** The probability of each character after `context`. */
  async next(context: readonly number[], temperature: number): Promise<number[]> {
    const given = new this.#pg.Tensor(Int32Array.from(context), { shape: [1, CONTEXT] });
    const scores = this.#scores(given);
    const values = (await scores.data()) as Float32Array;
    this.#pg.dispose(given, scores);
    return probabilitiesOf(values, temperature);
  }
}

/** The likeliest characters after what the visitor has typed, as bars. */
class NextCharacters {
  readonly #host = html("next-bars");
  readonly #note = html("next-note");

  constructor() {
    this.#note.textContent = "Train the model: then it says what follows.";
  }

  /** `tell`: whether the visitor has asked, and is told in words too. */
  show(probabilities: readonly number[], typed: string, tell: boolean): void {
    const order = probabilities.map((p, code) => ({ p, character: alphabet[code] ?? "" }));
    order.sort((a, b) => b.p - a.p);
    const best = order.slice(0, BARS);
    const rows = best.map(({ p, character }, i) => {
      const bar = make("span", "bar");
      bar.style.width = `${100 * p}%`;
      const number = make("span", "number", `${(100 * p).toFixed(p < 0.1 ? 1 : 0)}%`);
      return make(
        "li",
        i === 0 ? "best" : "",
        make("code", "", visible(character)),
        make("span", "track", bar),
        number,
      );
    });
    this.#host.replaceChildren(...rows);
    const [first] = best;
    if (!tell || !first) return;
    const rest = order.slice(BARS).reduce((sum, { p }) => sum + p, 0);
    this.#note.textContent =
      `After “${typed.slice(-CONTEXT).replaceAll("\n", "⏎")}” comes “${visible(first.character)}” with ${(100 * first.p).toFixed(0)}%; ` +
      `all others than these ${best.length}: ${(100 * rest).toFixed(1)}%.`;
  }
}

/** Random batches of the corpus. */
class Batches {
  readonly x = new Int32Array(BATCH * CONTEXT);
  readonly y = new Int32Array(BATCH);

  fill(): void {
    for (let i = 0; i < BATCH; i++) {
      const at = Math.floor(Math.random() * (codes.length - CONTEXT));
      this.x.set(codes.subarray(at, at + CONTEXT), i * CONTEXT);
      this.y[i] = codes[at + CONTEXT] ?? 0;
    }
  }
}

/** The panel. */
class Characters {
  readonly #train = button("train-characters");
  readonly #continue = button("continue-prompt");
  readonly #note = html("characters-note");
  readonly #samples = html("samples");
  readonly #temperature = element("temperature", HTMLInputElement);
  readonly #prompt = element("prompt", HTMLInputElement);
  readonly #next = new NextCharacters();
  readonly #chart = new Chart(html("characters-chart"), [
    { label: "loss", color: "--accent-solid", scale: "value" },
  ]);
  #reader: Reader | undefined;
  #model: Writer | undefined;
  #isTraining = false;
  #isWriting = false;

  constructor() {
    this.#train.addEventListener("click", () => void this.#start());
    this.#continue.addEventListener("click", () => void this.#continuePrompt());
    this.#prompt.addEventListener("input", () => void this.#showNext(true));
    this.#temperature.addEventListener("input", () => {
      html("temperature-value").textContent = Number(this.#temperature.value).toFixed(1);
      void this.#showNext(true);
    });
    this.#note.textContent =
      `${codes.length.toLocaleString("en")} characters of sonnets to learn from, ` +
      `${alphabet.length} different ones`;
  }

  /** What the visitor has typed, as the model sees it: its last characters, after an empty line. */
  #typedContext(): number[] {
    const typed = Array.from(`${"\n".repeat(CONTEXT)}${this.#prompt.value}`, (x) => alphabet.indexOf(x));
    return typed.filter((code) => code >= 0).slice(-CONTEXT);
  }

  /** Show what follows what the visitor has typed. */
  async #showNext(tell: boolean): Promise<void> {
    try {
      const typed = this.#prompt.value;
      const found = await this.#reader?.next(this.#typedContext(), Number(this.#temperature.value));
      if (found && this.#prompt.value === typed) this.#next.show(found, typed, tell);
    } catch (error) {
      this.#note.textContent = messageOf(error);
    }
  }

  /** Write a paragraph, letter by letter, after `context`. `goesOn`: whether to write the next letter. */
  async #write(
    reader: Reader,
    context: number[],
    title: string,
    begin: string,
    goesOn: () => boolean,
  ): Promise<void> {
    const text = make("p", "", begin);
    const entry = make("article", "sample writing", make("h3", "", title), text);
    this.#samples.prepend(entry);
    while (this.#samples.childElementCount > MAX_SAMPLES) this.#samples.lastElementChild?.remove();
    for (let i = 0; i < SAMPLE && goesOn(); i++) {
      const next = draw(await reader.next(context, Number(this.#temperature.value)));
      context = [...context.slice(1), next];
      text.append(alphabet[next] ?? "");
    }
    entry.classList.remove("writing");
  }

  /** Write on from what the visitor has typed. */
  async #continuePrompt(): Promise<void> {
    const reader = this.#reader;
    if (reader === undefined || this.#isWriting) return;
    this.#isWriting = true;
    this.#continue.disabled = true;
    try {
      const title = `from your words, at temperature ${Number(this.#temperature.value).toFixed(1)}`;
      await this.#write(
        reader,
        this.#typedContext(),
        title,
        this.#prompt.value,
        () => reader === this.#reader,
      );
    } catch (error) {
      this.#note.textContent = messageOf(error);
    } finally {
      this.#isWriting = false;
      this.#continue.disabled = this.#reader === undefined;
    }
  }

  async #start(): Promise<void> {
    if (this.#isTraining) {
      this.#isTraining = false; // the loop ends with its step
      this.#train.disabled = true; // until then
      return;
    }
    this.#isTraining = true;
    this.#train.textContent = "Stop";
    this.#chart.clear();
    this.#samples.replaceChildren();
    try {
      this.#note.textContent = "starting…";
      const pg = await session();
      this.#note.textContent = "compiling the training step…";
      await this.#learn(pg);
    } catch (error) {
      this.#note.textContent = messageOf(error);
    } finally {
      this.#isTraining = false;
      this.#train.disabled = false;
      this.#train.textContent = "Train again";
      this.#continue.disabled = this.#reader === undefined;
    }
  }

  async #learn(pg: Polygrad): Promise<void> {
    pg.Tensor.manualSeed(0);
    this.#reader = undefined;
    this.#continue.disabled = true;
    if (this.#model) pg.dispose(this.#model);
    const model = (this.#model = new Writer(pg, alphabet.length));
    const parameters = pg.nn.state.getParameters(model);
    const optimizer = new pg.optim.AdamW(parameters, { lr: 0.002, weightDecay: 0.01 });
    const batches = new Batches();
    const step = await prepareTraining(pg, model, optimizer, batches.x, batches.y);
    const reader = (this.#reader = new Reader(pg, model));
    this.#continue.disabled = false;
    this.#note.textContent = await this.#runSteps(step, batches, reader);
    step.dispose();
    pg.dispose(optimizer);
    await this.#showNext(true);
  }

  /** Train until it is stopped, and write once a second. */
  async #runSteps(step: Training, batches: Batches, reader: Reader): Promise<string> {
    const started = performance.now();
    let [done, writing, written] = [0, 0, started];
    let mean = NaN; // of the loss, over the last steps
    while (this.#isTraining) {
      batches.fill();
      const loss = await step.run();
      mean = Number.isNaN(mean) ? loss : 0.95 * mean + 0.05 * loss;
      if (++done % 5 === 0 || done === 1) this.#chart.add(done, mean);
      const now = performance.now();
      if (now - written < SECOND) continue;
      const speed = (done / (now - started - writing)) * 1e3;
      this.#note.textContent = `step ${done} · loss ${mean.toFixed(3)} · ${speed.toFixed(0)} steps/s`;
      void this.#showNext(false);
      const title = `after ${done} steps, loss ${mean.toFixed(2)}`;
      await this.#write(reader, randomContext(), title, "", () => this.#isTraining);
      written = performance.now();
      writing += written - now;
    }
    return `stopped after ${done} steps, loss ${mean.toFixed(3)}`;
  }
}

/** The characters before a line of the corpus. */
function randomContext(): number[] {
  const start = corpus.lastIndexOf("\n", Math.floor(Math.random() * (corpus.length - CONTEXT))) + 1;
  return Array.from(codes.slice(Math.max(start - CONTEXT, 0), Math.max(start, CONTEXT)));
}

export function startCharacters(): void {
  new Characters();
}
