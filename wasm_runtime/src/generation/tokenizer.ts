/** What a model with text needs of a tokenizer. `polygrad/runtime/tokenizers` has one. */

/** A message of a conversation, with whatever else the chat template reads. */
export interface Message {
  readonly role: string;
  readonly content?: unknown;
  readonly [name: string]: unknown;
}

/** Makes text of tokens that come one by one: whole characters, as soon as they are certain. */
export interface TextStream {
  feed(token: number): string;
  /** The text that was waiting for another token. */
  finish(): string;
}

export interface Tokenizer {
  /** The tokens of a text, with special ones around it unless told otherwise; a longer text than `maxLength` loses its end. */
  encode(text: string, options?: { specialTokens?: boolean; maxLength?: number }): number[];
  /** The text of tokens, without special ones. */
  decode(tokens: Iterable<number>): string;
  stream(): TextStream;
  /** A conversation as the text that the model was trained on. */
  applyChatTemplate(messages: readonly Message[], options?: ChatOptions): string;
}

/** What a chat template gets besides messages: JSON schemas of functions, and variables of its own. */
export interface ChatOptions {
  readonly tools?: readonly object[] | undefined;
  readonly addGenerationPrompt?: boolean;
  readonly variables?: Readonly<Record<string, unknown>>;
}

/** The module `polygrad/runtime/tokenizers`. */
export interface Tokenizers {
  openTokenizer(file: Uint8Array): Tokenizer;
}

/** The tokenizer's name among the files of a model. */
export const TOKENIZER_FILE = "tokenizer.json";
