/**
 * `LanguageModel`: an exported model that generates text, without Python. `polygrad/generation/exporting.py` has its
 * Programs, which draw tokens too: this gives them numbers, and reads one token for each run.
 */

import { ProgramError } from "../errors";
import { openModel, type Loaded, type LoadedPrograms, type ModelHost, type OpenedModel } from "../loading";
import { drawName, fullSampling, isPenalized, numbersOf, type FullSampling, type Sampling } from "./sampling";
import { countOf, settingsOf, type Settings } from "./settings";
import { StopStrings } from "./stop_strings";
import { TOKENIZER_FILE, type ChatOptions, type Message, type Tokenizer, type Tokenizers } from "./tokenizer";
import { pauseIfDue } from "./pause";

const KIND = "text-generation";

/** A text, or the ids of its tokens. */
export type Prompt = string | readonly number[];

/** Options of an answer. Those that are not given are as the model's files say. */
export interface GenerateOptions extends Sampling {
  /** The most tokens of the answer. */
  readonly maxNewTokens?: number;
  /** Strings that end the answer and are not part of it. They need a tokenizer. */
  readonly stop?: string | readonly string[];
  /** Tokens that end the answer. */
  readonly stopTokens?: readonly number[];
  /** Ends the answer: then the iteration throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** A part of an answer: text of whole characters, the tokens that were drawn for it, and, of the last part, why it ended. */
export interface Piece {
  readonly text: string;
  readonly tokens: readonly number[];
  readonly finishReason?: "stop" | "length";
}

/** A checked request. */
interface Request {
  readonly tokens: readonly number[];
  readonly limit: number;
  readonly sampling: FullSampling;
  readonly stops: StopStrings;
  readonly stopTokens: ReadonlySet<number>;
  readonly signal: AbortSignal | undefined;
}

export class LanguageModel {
  /** The most tokens of a prompt and its answer. */
  readonly capacity: number;
  /** The model's tokenizer; undefined without `tokenizers`, and where the file has none. */
  readonly tokenizer: Tokenizer | undefined;
  readonly #programs: LoadedPrograms;
  readonly #settings: Settings;
  /** The tokens whose keys and values are in the cache. */
  #cached: number[] = [];
  /** The number of the last answer. */
  #answer = 0;

  /** Use `loadLanguageModel` instead. */
  constructor({ head, programs }: OpenedModel, tokenizers?: Tokenizers) {
    this.#programs = programs;
    this.#settings = settingsOf(head.settings);
    this.capacity = this.#settings.capacity;
    const file = head.files.get(TOKENIZER_FILE);
    this.tokenizer = file && tokenizers?.openTokenizer(file);
  }

  /**
   * The answer to a prompt, part by part. Leaving the loop ends it, and so does the next answer of this model. The cache
   * keeps its tokens, so a prompt that begins with them costs what is new. Throws ProgramError for options and prompts
   * that do not fit, and once another answer has begun.
   */
  async *generate(prompt: Prompt, options: GenerateOptions = {}): AsyncGenerator<Piece, void, undefined> {
    yield* this.#run(this.#request(prompt, options));
  }

  /** As `generate`, for a conversation. It needs a tokenizer with a chat template. */
  async *chat(
    messages: readonly Message[],
    { tools, variables, ...options }: GenerateOptions & Omit<ChatOptions, "addGenerationPrompt"> = {},
  ): AsyncGenerator<Piece, void, undefined> {
    const tokenizer = this.#needTokenizer("chat");
    const text = tokenizer.applyChatTemplate(messages, { tools, ...(variables && { variables }) });
    // templates contain the special tokens
    yield* this.generate(tokenizer.encode(text, { specialTokens: false }), options);
  }

  #needTokenizer(what: string): Tokenizer {
    if (this.tokenizer !== undefined) return this.tokenizer;
    throw new ProgramError(
      `${what}: expected a tokenizer, got none: export the model with one, and load it with ` +
        "the module polygrad/runtime/tokenizers as its option tokenizers",
    );
  }

  #request(prompt: Prompt, options: GenerateOptions): Request {
    const { vocabulary, maxNewTokens, sampling, stopTokens } = this.#settings;
    const tokens = typeof prompt === "string" ? this.#needTokenizer("prompt").encode(prompt) : [...prompt];
    const wrong = tokens.find((token) => !Number.isInteger(token) || token < 0 || token >= vocabulary);
    if (wrong !== undefined || tokens.length === 0) {
      throw new ProgramError(
        `prompt: expected ids of the model's ${vocabulary} tokens, got ${wrong ?? "none"}`,
      );
    }
    const room = this.capacity - tokens.length;
    if (room < 1) {
      throw new ProgramError(
        `prompt: expected at most ${this.capacity - 1} tokens, got ${tokens.length}: shorten it, or export the model ` +
          "with a greater max_seq_len",
      );
    }
    const stop = typeof options.stop === "string" ? [options.stop] : (options.stop ?? []);
    if (stop.includes("")) throw new ProgramError("stop: expected strings with characters, got an empty one");
    if (stop.length > 0) this.#needTokenizer("stop");
    return {
      tokens,
      limit: Math.min(room, countOf(options.maxNewTokens ?? maxNewTokens, "maxNewTokens")),
      sampling: fullSampling({ ...sampling, ...withoutUndefined(options) }, vocabulary),
      stops: new StopStrings(stop),
      stopTokens: new Set(options.stopTokens ?? stopTokens),
      signal: options.signal,
    };
  }

  async *#run({ tokens, limit, sampling, stops, stopTokens, signal }: Request): AsyncGenerator<Piece, void> {
    const number = ++this.#answer;
    const check = async (): Promise<void> => {
      await pauseIfDue();
      signal?.throwIfAborted();
      if (number !== this.#answer) {
        throw new ProgramError("generate: another answer of this model has begun: end one before the next");
      }
    };
    const text = this.tokenizer?.stream();
    await this.#fill(tokens, check);
    this.#set(sampling, tokens);
    const penalize = isPenalized(sampling) ? await this.#programs.get("penalize") : undefined;
    const draw = await this.#programs.get(drawName(sampling));
    const decode = await this.#programs.get("decode");
    await check();
    let token = 0;
    for (let count = 0; ; count++) {
      const length = tokens.length + count;
      if (count > 0) {
        decode.execute({ length });
        this.#cached.push(token);
      }
      penalize?.execute({ drawn: Math.min(count, 1) });
      draw.execute({ position: length });
      token = await this.#token();
      await check();
      const isEnd = stopTokens.has(token);
      const tokensOf = isEnd ? [] : [token];
      let part = isEnd ? "" : stops.feed(text?.feed(token) ?? "");
      if (stops.isFound()) {
        yield { text: part, tokens: tokensOf, finishReason: "stop" };
        return;
      }
      if (isEnd || count + 1 >= limit) {
        part += stops.feed(text?.finish() ?? "");
        if (!stops.isFound()) part += stops.finish();
        yield { text: part, tokens: tokensOf, finishReason: isEnd ? "stop" : "length" };
        return;
      }
      yield { text: part, tokens: tokensOf };
      await check();
    }
  }

  async #token(): Promise<number> {
    return Number((await this.#programs.read("token"))[0]);
  }

  /** Extend the cache by a prompt, but for what it has. The scores of what follows are there then. */
  async #fill(tokens: readonly number[], check: () => Promise<void>): Promise<void> {
    let start = 0;
    while (start < tokens.length - 1 && tokens[start] === this.#cached[start]) start++;
    this.#cached.length = Math.min(this.#cached.length, start);
    for (const { first, length } of chunksOf(tokens.length, start, this.#settings.chunks)) {
      const program = await this.#programs.get(`prefill${length}`);
      await check();
      const chunk = tokens.slice(first, first + length);
      this.#cached.length = Math.min(this.#cached.length, first);
      program.writePart(
        inputOf(program),
        Int32Array.from({ length }, (_, i) => chunk[i] ?? 0),
      );
      program.execute({ start: first, last: chunk.length - 1 });
      this.#cached.push(...chunk);
    }
  }

  #set(sampling: FullSampling, prompt: readonly number[]): void {
    const { vocabulary } = this.#settings;
    this.#write("numbers", numbersOf(sampling, vocabulary));
    this.#write("seeds", BigUint64Array.of(BigInt(sampling.seed)));
    if (!isPenalized(sampling)) return;
    const seen = new Uint8Array(vocabulary);
    for (const token of prompt) seen[token] = 1;
    const bias = new Float32Array(vocabulary);
    for (const [token, value] of Object.entries(sampling.logitBias))
      bias[Number(token)] = Math.max(value, -1e30);
    this.#write("seen", seen);
    this.#write("bias", bias);
    this.#write("counts", new Int32Array(vocabulary));
  }

  #write(name: string, data: ArrayBufferView): void {
    this.#programs.write(`sampling.${name}`, data);
  }
}

/** The number of a Program's only input. */
function inputOf({ program }: Loaded): number {
  return program.buffers.findIndex(({ role }) => role === "input");
}

function withoutUndefined(options: GenerateOptions): Sampling {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
}

/** The chunks for the tokens `start` to `count` of a sequence, of the lengths that there are. */
export function chunksOf(
  count: number,
  start: number,
  lengths: readonly number[],
): { readonly first: number; readonly length: number }[] {
  const chunks = [];
  for (let next = start; next < count;) {
    const remaining = count - next;
    const length = lengths.find((n) => n >= remaining) ?? lengths.at(-1) ?? 1;
    // the last one ends with the sequence, or begins with it
    const first = length > remaining ? Math.max(count - length, 0) : next;
    chunks.push({ first, length });
    next = first + length;
  }
  return chunks;
}

/** The model in a file. Rejects as `openModel` does. */
export async function openLanguageModel(
  source: Uint8Array | AsyncIterable<Uint8Array>,
  host: ModelHost,
  tokenizers?: Tokenizers,
): Promise<LanguageModel> {
  return new LanguageModel(await openModel(source, KIND, host), tokenizers);
}
