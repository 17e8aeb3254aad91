/**
 * The tokenizer of an exported model, as `polygrad/hf/tokenizer_export.py` writes it: added tokens, special tokens around
 * a text, decoding and chat templates. A library finds the tokens of words and renders templates.
 */

import { ProgramError } from "../errors";
import type { ChatOptions, Message, TextStream, Tokenizer } from "../generation/tokenizer";
import { AddedTokens } from "./added_tokens";
import { Decoder } from "./decoding";
import { readTokenizerFile, type TokenizerFile } from "./tokenizer_file";

/** A library's tokenizer without added tokens. `first`: whether normalized text begins the whole text. */
export interface Words {
  normalize(text: string): string;
  encode(text: string, first: boolean): ArrayLike<number>;
}

export interface TextLibrary {
  /** `data`: a tokenizer.json as the library takes it. */
  openWords(data: object): Words;
  /** The text that a template makes of `variables`, which are JSON. */
  renderTemplate(template: string, variables: string): string;
}

export class ModelTokenizer implements Tokenizer {
  readonly #file: TokenizerFile;
  readonly #library: TextLibrary;
  readonly #words: Words;
  readonly #added: AddedTokens;
  readonly #tokens: ReadonlyMap<number, string>;
  readonly #special: ReadonlySet<number>;

  /** Throws ProgramError for a damaged file, and for one that was exported for Python alone. */
  constructor(bytes: Uint8Array, library: TextLibrary) {
    this.#file = readTokenizerFile(bytes);
    this.#library = library;
    const { tokenizer, javascript } = this.#file;
    const { added_tokens: added, model } = tokenizer;
    const merges = model.merges?.map((merge) => (typeof merge === "string" ? merge.split(" ") : merge));
    this.#words = library.openWords({
      version: "1.0",
      added_tokens: [],
      normalizer: javascript.normalizer,
      pre_tokenizer: javascript.pre_tokenizer,
      post_processor: null,
      decoder: null,
      model: { ...javascript.model, vocab: model.vocab, ...(merges && { merges }) },
    });
    this.#added = new AddedTokens(added, (text) => this.#words.normalize(text));
    this.#tokens = new Map([
      ...vocabularyOf(model.vocab),
      ...added.map(({ id, content }): [number, string] => [id, content]),
    ]);
    this.#special = new Set(added.filter(({ special }) => special).map(({ id }) => id));
  }

  encode(
    text: string,
    { specialTokens = true, maxLength = Infinity }: { specialTokens?: boolean; maxLength?: number } = {},
  ): number[] {
    if (/\p{Surrogate}/u.test(text)) {
      throw new ProgramError("text: expected whole characters, got a half of one (a lone surrogate)");
    }
    const ids: number[] = [];
    for (const section of this.#added.sections(text)) {
      if (section.id !== undefined) ids.push(section.id);
      else for (const id of Array.from(this.#words.encode(section.text, section.first))) ids.push(id);
    }
    const { single } = this.#file;
    const overhead = specialTokens ? single.reduce((sum, { ids }) => sum + ids.length, 0) : 0;
    const kept = ids.slice(0, Math.max(maxLength - overhead, 0));
    return single.flatMap((piece) => (piece.sequence !== null ? kept : specialTokens ? piece.ids : []));
  }

  decode(tokens: Iterable<number>): string {
    const stream = this.stream();
    return [...tokens].map((token) => stream.feed(token)).join("") + stream.finish();
  }

  stream(): TextStream {
    const decoder = new Decoder(this.#file.tokenizer.decoder, this.#file.cleans_up);
    return {
      feed: (id) => {
        const token = this.#tokens.get(id);
        return token === undefined || this.#special.has(id) ? "" : decoder.feed(token);
      },
      finish: () => decoder.finish(),
    };
  }

  applyChatTemplate(
    messages: readonly Message[],
    { tools, addGenerationPrompt = true, variables = {} }: ChatOptions = {},
  ): string {
    const { templates, special } = this.#file;
    const template = (tools && templates.tool_use) ?? templates.default;
    if (template === undefined) {
      throw new ProgramError(
        "chat: expected a tokenizer with a chat template, got one without: use generate",
      );
    }
    const values = {
      ...special,
      ...variables,
      messages: plainMessages(messages),
      tools: tools ?? null,
      documents: variables.documents ?? null,
      add_generation_prompt: addGenerationPrompt,
    };
    try {
      return this.#library.renderTemplate(template, JSON.stringify(values));
    } catch (cause) {
      throw new ProgramError(`chat template: ${cause instanceof Error ? cause.message : String(cause)}`, {
        cause,
      });
    }
  }
}

const REASONING = ["reasoning_content", "thinking", "reasoning"];

/** Messages as templates are given them: without what is null, and with an answer's reasoning by both of its names. */
function plainMessages(messages: readonly Message[]): object[] {
  if (!Array.isArray(messages) || messages.length === 0) {
    throw new ProgramError("messages: expected a list of at least one message");
  }
  return messages.map((message: Message | null | undefined, i) => {
    if (typeof message?.role !== "string") {
      throw new ProgramError(`messages[${i}]: expected an object with a role and a content`);
    }
    const plain = Object.fromEntries(
      Object.entries(message).filter(([, value]) => value !== null && value !== undefined),
    );
    const name = REASONING.find((name) => name in plain);
    if (name === undefined) return plain;
    return { thinking: plain[name], ...plain, reasoning_content: plain[name] };
  });
}

function vocabularyOf(vocab: TokenizerFile["tokenizer"]["model"]["vocab"]): [number, string][] {
  if (Array.isArray(vocab)) {
    return (vocab as readonly (readonly [string, number])[]).map(([token], id) => [id, token]);
  }
  return Object.entries(vocab as Readonly<Record<string, number>>).map(([token, id]) => [id, token]);
}
