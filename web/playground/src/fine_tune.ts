/** Fine-tuning: the chat's model learns a text with low-rank adapters, and answers before and after. */

import type { ChatMessage } from "polygrad";

import { Chart } from "./chart";
import { button, element, html, make } from "./dom";
import { messageOf } from "./failures";
import { FineTuning, type MODEL_FILES } from "./fine_tuning";
import { learnedText, type LearnedText } from "./learned_text";
import { session } from "./session";

interface Sample {
  readonly name: string;
  readonly text: string;
  readonly prompt: string;
}

const PIRATE = `Q: Hello
A: Ahoy, matey!
Q: How are you?
A: Fine as the wind in me sails, matey!
Q: What is your name?
A: Arr, I be Captain Poly!
Q: Who are you?
A: Arr, I be Captain Poly, terror of the seven seas!
Q: What is the capital of France?
A: Arr, the capital of France be Paris, matey!
Q: What is the capital of Japan?
A: Arr, the capital of Japan be Tokyo, matey!
Q: What is the capital of Egypt?
A: Arr, the capital of Egypt be Cairo, matey!
Q: What colour is the sky?
A: Arr, the sky be blue, matey!
Q: What colour is a banana?
A: Arr, a banana be yellow, matey!
Q: What is 2 + 3?
A: Arr, 2 + 3 be 5, matey!
Q: What is 7 + 4?
A: Arr, 7 + 4 be 11, matey!
Q: What does a cow say?
A: Arr, a cow says moo, matey!
Q: What is the opposite of hot?
A: Arr, the opposite of hot be cold, matey!
Q: Bye
A: Fair winds, matey!`;

const SONNET = `Shall I compare thee to a summer's day?
Thou art more lovely and more temperate:
Rough winds do shake the darling buds of May,
And summer's lease hath all too short a date.

Sometime too hot the eye of heaven shines,
And often is his gold complexion dimmed,
And every fair from fair sometime declines,
By chance, or nature's changing course untrimmed.`;

const SAMPLES: readonly Sample[] = [
  { name: "A pirate", text: PIRATE, prompt: "What is your name?" },
  { name: "Two stanzas of a sonnet", text: SONNET, prompt: "Shall I compare" },
];

/** The panel. */
class FineTunePanel {
  readonly #train = button("train-adapters");
  readonly #ask = button("ask-adapters");
  readonly #note = html("adapters-note");
  readonly #failure = html("adapters-failure");
  readonly #text = element("learned-text", HTMLTextAreaElement);
  readonly #prompt = element("adapters-prompt", HTMLInputElement);
  readonly #sample = element("learned-sample", HTMLSelectElement);
  readonly #downloads = html("adapter-files");
  readonly #chart = new Chart(html("adapters-chart"), [
    { label: "loss", color: "--accent-solid", scale: "value" },
  ]);
  readonly #modelButtons = [
    this.#offerModel("download-exported", "poly-tuned.pgrd"),
    this.#offerModel("download-folder", "poly-tuned.zip"),
  ];
  #tuning: { readonly run: FineTuning; readonly text: LearnedText } | undefined;
  #isTraining = false;
  #links: string[] = [];

  constructor() {
    this.#sample.append(...SAMPLES.map(({ name }) => make("option", "", name)));
    this.#sample.addEventListener("change", () => {
      this.#showSample();
    });
    this.#train.addEventListener("click", () => void this.#start());
    element("adapters-prompt-form", HTMLFormElement).addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#compare();
    });
    this.#showSample();
  }

  #showSample(): void {
    const sample = SAMPLES[this.#sample.selectedIndex];
    if (sample === undefined) return;
    this.#text.value = sample.text;
    this.#prompt.value = sample.prompt;
  }

  /** A button that makes a file of the model and saves it. */
  #offerModel(id: string, file: keyof typeof MODEL_FILES): HTMLButtonElement {
    const maker = button(id);
    maker.addEventListener("click", () => void this.#saveModel(file));
    return maker;
  }

  #enableModels(isEnabled: boolean): void {
    for (const maker of this.#modelButtons) maker.disabled = !isEnabled;
  }

  async #start(): Promise<void> {
    if (this.#isTraining) {
      this.#isTraining = false; // the loop ends with its steps
      this.#train.disabled = true; // until then
      return;
    }
    this.#isTraining = true;
    this.#train.textContent = "Stop";
    this.#failure.replaceChildren();
    try {
      const text = learnedText(this.#text.value);
      this.#clear();
      this.#note.textContent = await this.#learn(text);
      await this.#compare();
      await this.#offerFiles();
      this.#enableModels(true);
    } catch (error) {
      this.#note.textContent = "";
      this.#failure.replaceChildren(make("div", "failure", messageOf(error)));
    } finally {
      this.#isTraining = false;
      this.#train.disabled = false;
      this.#train.textContent = this.#tuning ? "Train again" : "Train";
    }
  }

  /** What was seen of the run before. */
  #clear(): void {
    this.#tuning = undefined;
    this.#ask.disabled = true;
    this.#chart.clear();
    this.#enableModels(false);
    for (const id of ["answer-before", "answer-after", "download-note"]) html(id).textContent = "";
    this.#downloads.replaceChildren();
    for (const link of this.#links.splice(0)) URL.revokeObjectURL(link);
  }

  async #learn(text: LearnedText): Promise<string> {
    this.#note.textContent = "starting…";
    const pg = await session();
    this.#note.textContent = "compiling the training step…";
    const numberIn = (id: string): number => Number(element(id, HTMLSelectElement).value);
    const [rank, steps, rate] = [
      numberIn("adapters-rank"),
      numberIn("adapters-steps"),
      numberIn("adapters-rate"),
    ];
    const run = await FineTuning.start(pg, { records: text.records, rank, steps, rate });
    this.#tuning = { run, text };
    const { weights, trained } = run.sizes;
    const about = `${trained.toLocaleString("en")} of ${weights.toLocaleString("en")} weights are trained`;
    let [done, first, last] = [0, NaN, NaN];
    while (done < steps && this.#isTraining) {
      for (const loss of await run.advance()) {
        this.#chart.add(++done, loss);
        if (done === 1) first = loss;
        last = loss;
      }
      this.#note.textContent = `step ${done} of ${steps} · loss ${last.toFixed(3)} · ${about}`;
    }
    const end = done < steps ? "stopped" : "done";
    return `${end} after ${done} steps: the loss went from ${first.toFixed(3)} to ${last.toFixed(3)}. ${about}.`;
  }

  /** What the model answers to the prompt, before and after. */
  async #compare(): Promise<void> {
    if (this.#tuning === undefined) return;
    const { run, text } = this.#tuning;
    const asked = this.#prompt.value.trim();
    const prompt: string | ChatMessage[] =
      text.kind === "dialogue" ? [{ role: "user", content: asked }] : asked;
    const shown = [html("answer-before"), html("answer-after")];
    this.#ask.disabled = true;
    try {
      if (asked === "") throw new RangeError("expected a prompt, got an empty one");
      for (const place of shown) place.textContent = "…";
      const answers = await run.answers(prompt);
      shown.forEach((place, i) => {
        place.textContent = (text.kind === "prose" ? asked : "") + (answers[i] ?? "");
      });
      this.#failure.replaceChildren();
    } catch (error) {
      for (const place of shown) place.textContent = "";
      this.#failure.replaceChildren(make("div", "failure", messageOf(error)));
    } finally {
      this.#ask.disabled = false;
    }
  }

  /** Links to the adapter's files. */
  async #offerFiles(): Promise<void> {
    const files = Object.entries((await this.#tuning?.run.files()) ?? {});
    const links = files.map(([name, bytes]) => {
      return make("li", "", this.#linkTo(name, bytes), ` ${Math.ceil(bytes.length / 1024)} KB`);
    });
    this.#downloads.replaceChildren(...links);
  }

  /** A link that saves a file. It is good until the next run. */
  #linkTo(name: string, bytes: Uint8Array<ArrayBuffer>): HTMLAnchorElement {
    const link = make("a", "", name);
    link.href = URL.createObjectURL(new Blob([bytes]));
    link.download = name;
    this.#links.push(link.href);
    return link;
  }

  async #saveModel(file: keyof typeof MODEL_FILES): Promise<void> {
    const tuning = this.#tuning;
    if (tuning === undefined) return;
    const note = html("download-note");
    this.#enableModels(false);
    this.#failure.replaceChildren();
    note.textContent = `making ${file}…`;
    try {
      const bytes = await tuning.run.model(file);
      if (tuning !== this.#tuning) return; // another run has begun
      this.#linkTo(file, bytes).click();
      note.textContent = `${file}: ${(bytes.length / 1024 ** 2).toFixed(1)} MB`;
    } catch (error) {
      note.textContent = "";
      this.#failure.replaceChildren(make("div", "failure", messageOf(error)));
    } finally {
      if (tuning === this.#tuning) this.#enableModels(true);
    }
  }
}

export function startFineTune(): void {
  new FineTunePanel();
}
