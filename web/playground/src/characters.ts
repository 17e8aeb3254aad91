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
import { prepareTraining } from "./training";

const [CONTEXT, EMBEDDED, HIDDEN, BATCH] = [10, 16, 256, 128];
const [SAMPLE, MAX_SAMPLES, SECOND] = [160, 12, 1000];

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

/** Draw a character by its scores. The lower the temperature, the likelier is the one with the best score. */
function choose(scores: ArrayLike<number>, temperature: number): number {
  const list = Array.from(scores);
  const greatest = Math.max(...list);
  const weights = list.map((score) => Math.exp((score - greatest) / temperature));
  let remaining = Math.random() * weights.reduce((a, b) => a + b, 0);
  const index = weights.findIndex((weight) => (remaining -= weight) <= 0);
  return Math.max(index, 0);
}

export function startCharacters(): void {
  const [train, note, samples] = [button("train-characters"), html("characters-note"), html("samples")];
  const temperature = element("temperature", HTMLInputElement);
  const [codes, alphabet] = encode(corpus);
  const chart = new Chart(html("characters-chart"), [
    { label: "loss", color: "--accent-solid", scale: "value" },
  ]);
  let training = false;

  /** Write a paragraph, letter by letter. */
  async function write(pg: Polygrad, scores: (context: Tensor) => Tensor, title: string): Promise<void> {
    const text = make("p", "");
    const entry = make("article", "sample writing", make("h3", "", title), text);
    samples.prepend(entry);
    while (samples.childElementCount > MAX_SAMPLES) samples.lastElementChild?.remove();
    const start = corpus.lastIndexOf("\n", Math.floor(Math.random() * (corpus.length - CONTEXT))) + 1;
    let context = Array.from(codes.slice(Math.max(start - CONTEXT, 0), Math.max(start, CONTEXT)));
    for (let i = 0; i < SAMPLE && training; i++) {
      const given = new pg.Tensor(Int32Array.from(context), { shape: [1, CONTEXT] });
      const nextScores = scores(given);
      const next = choose((await nextScores.data()) as Float32Array, Number(temperature.value));
      pg.dispose(given, nextScores);
      context = [...context.slice(1), next];
      text.append(alphabet[next] ?? "");
    }
    entry.classList.remove("writing");
  }

  async function learn(pg: Polygrad): Promise<void> {
    const { Tensor, nn, optim } = pg;
    Tensor.manualSeed(0);
    const model = new Writer(pg, alphabet.length);
    const optimizer = new optim.AdamW(nn.state.getParameters(model), { lr: 0.002, weightDecay: 0.01 });
    const x = new Int32Array(BATCH * CONTEXT);
    const y = new Int32Array(BATCH);
    const step = await prepareTraining(pg, model, optimizer, x, y);
    const scores = pg.TinyJit((context: Tensor) => model.forward(context));
    const started = performance.now();
    let [done, writing, written] = [0, 0, started];
    let mean = NaN; // of the loss, over the last steps
    while (training) {
      for (let i = 0; i < BATCH; i++) {
        const at = Math.floor(Math.random() * (codes.length - CONTEXT));
        x.set(codes.subarray(at, at + CONTEXT), i * CONTEXT);
        y[i] = codes[at + CONTEXT] ?? 0;
      }
      const loss = await step.run();
      mean = Number.isNaN(mean) ? loss : 0.95 * mean + 0.05 * loss;
      if (++done % 5 === 0 || done === 1) chart.add(done, mean);
      const now = performance.now();
      if (now - written < SECOND) continue;
      const speed = (done / (now - started - writing)) * 1e3;
      note.textContent = `step ${done} · loss ${mean.toFixed(3)} · ${speed.toFixed(0)} steps/s`;
      await write(pg, scores, `after ${done} steps, loss ${mean.toFixed(2)}`);
      written = performance.now();
      writing += written - now;
    }
    step.dispose();
    pg.dispose(optimizer, model);
    note.textContent = `stopped after ${done} steps, loss ${mean.toFixed(3)}`;
  }

  const start = async (): Promise<void> => {
    if (training) {
      training = false; // the loop ends with its step
      return;
    }
    training = true;
    train.textContent = "Stop";
    chart.clear();
    samples.replaceChildren();
    try {
      note.textContent = "starting…";
      const pg = await session();
      note.textContent = "compiling the training step…";
      await learn(pg);
    } catch (error) {
      note.textContent = messageOf(error);
    } finally {
      training = false;
      train.textContent = "Train";
    }
  };

  train.addEventListener("click", () => void start());
  note.textContent = `${codes.length.toLocaleString("en")} characters of sonnets to learn from, ${alphabet.length} different ones`;
}
