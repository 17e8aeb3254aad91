/** `Encoder` and `Classifier`: exported models that read texts. `polygrad/hf/exporting.py` has their Programs. */

import { ProgramError } from "../errors";
import { openModel, type LoadedPrograms, type ModelHost, type OpenedModel } from "../loading";
import type { Prompt } from "./language_model";
import { pauseIfDue } from "./pause";
import { countOf, countsOf } from "./settings";
import { TOKENIZER_FILE, type Tokenizer, type Tokenizers } from "./tokenizer";

/** How texts are read. */
export interface TextOptions {
  /** Ends the work: then the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

class TextReader {
  /** The most tokens of a text; longer ones lose their ends. */
  readonly maxTokens: number;
  /** The model's tokenizer; undefined without `tokenizers`, and where the file has none. */
  readonly tokenizer: Tokenizer | undefined;
  readonly #programs: LoadedPrograms;
  readonly #lengths: readonly number[];
  readonly #vocabulary: number;
  readonly #pad: number;
  #last: Promise<unknown> = Promise.resolve();

  /** Use `loadTextEncoder` or `loadTextClassifier` instead. */
  constructor({ head, programs }: OpenedModel, tokenizers?: Tokenizers) {
    const { lengths, vocabulary, pad } = head.settings;
    this.#programs = programs;
    this.#lengths = countsOf(lengths, "lengths");
    this.#vocabulary = countOf(vocabulary, "vocabulary");
    this.#pad = countOf(pad, "pad", 0);
    this.maxTokens = this.#lengths.at(-1) ?? 0;
    const file = head.files.get(TOKENIZER_FILE);
    this.tokenizer = file && tokenizers?.openTokenizer(file);
  }

  /** The values of each text, one after the other. Calls wait for earlier ones. */
  protected read(texts: readonly Prompt[], { signal }: TextOptions): Promise<Float32Array[]> {
    const work = this.#last.then(async () => {
      const out: Float32Array[] = [];
      for (const row of texts.map((text, i) => this.#row(text, i))) {
        await pauseIfDue();
        signal?.throwIfAborted();
        out.push(await this.#run(row));
      }
      return out;
    });
    this.#last = work.catch(() => undefined);
    return work;
  }

  #row(text: Prompt, index: number): readonly number[] {
    if (typeof text === "string" && this.tokenizer === undefined) {
      throw new ProgramError(
        `texts[${index}]: expected a tokenizer, got none: export the model with one, and load it with ` +
          "the module polygrad/runtime/tokenizers as its option tokenizers",
      );
    }
    const row =
      typeof text === "string"
        ? (this.tokenizer?.encode(text, { maxLength: this.maxTokens }) ?? [])
        : text.slice(0, this.maxTokens);
    const wrong = row.find((token) => !Number.isInteger(token) || token < 0 || token >= this.#vocabulary);
    if (wrong !== undefined || row.length === 0) {
      throw new ProgramError(
        `texts[${index}]: expected ids of the model's ${this.#vocabulary} tokens, got ${wrong ?? "none"}`,
      );
    }
    return row;
  }

  async #run(row: readonly number[]): Promise<Float32Array> {
    const length = this.#lengths.find((n) => n >= row.length) ?? this.maxTokens;
    const loaded = await this.#programs.get(`read${length}`);
    const find = (wanted: string): number => loaded.program.buffers.findIndex(({ name }) => name === wanted);
    const filled = (pad: number, value: (i: number) => number): Int32Array =>
      Int32Array.from({ length }, (_, i) => (i < row.length ? value(i) : pad));
    loaded.writePart(
      find("ids"),
      filled(this.#pad, (i) => row[i] ?? 0),
    );
    loaded.writePart(
      find("mask"),
      filled(0, () => 1),
    );
    loaded.execute({});
    const values = find("values");
    return (await loaded.read(values, loaded.program.buffers[values]?.size ?? 0)) as Float32Array;
  }
}

/** A model that gives the vectors of texts. */
export class Encoder extends TextReader {
  /** A vector of each text. Rejects with ProgramError for texts that do not fit. */
  embed(texts: readonly Prompt[], options: TextOptions = {}): Promise<Float32Array[]> {
    return this.read(texts, options);
  }
}

/** A model that gives the labels of texts. */
export class Classifier extends TextReader {
  readonly labels: readonly string[];

  constructor(model: OpenedModel, tokenizers?: Tokenizers) {
    super(model, tokenizers);
    const { labels } = model.head.settings;
    if (!Array.isArray(labels)) throw new ProgramError("settings: expected labels, got none");
    this.labels = labels.map(String);
  }

  /** The probability of each label, for each text. Rejects with ProgramError for texts that do not fit. */
  async classify(texts: readonly Prompt[], options: TextOptions = {}): Promise<Record<string, number>[]> {
    const rows = await this.read(texts, options);
    return rows.map((row) => Object.fromEntries(this.labels.map((label, i) => [label, row[i] ?? 0])));
  }
}

/** The model in a file. Rejects as `openModel` does. */
export async function openEncoder(
  source: Uint8Array | AsyncIterable<Uint8Array>,
  host: ModelHost,
  tokenizers?: Tokenizers,
): Promise<Encoder> {
  return new Encoder(await openModel(source, "feature-extraction", host), tokenizers);
}

/** The model in a file. Rejects as `openModel` does. */
export async function openClassifier(
  source: Uint8Array | AsyncIterable<Uint8Array>,
  host: ModelHost,
  tokenizers?: Tokenizers,
): Promise<Classifier> {
  return new Classifier(await openModel(source, "text-classification", host), tokenizers);
}
