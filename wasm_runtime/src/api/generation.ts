/** Answers of language models: their options, and the loop over slices of time in which Python writes them. */

import { Handle } from "./handle";
import type { OptionNames } from "./options";
import type { Session } from "./session";

/** A part of a conversation. Templates of some models read further properties, such as `tool_calls`. */
export interface ChatMessage {
  readonly role: string;
  readonly content: string;
  readonly [name: string]: unknown;
}

/** What a language model goes on with: text, tokens, or a conversation, for which the model has a chat template. */
export type Prompt = string | readonly number[] | readonly ChatMessage[];

/** How tokens are drawn. Where none of these is given, the model's files say how it samples. */
export interface SamplingOptions {
  /** What scores are divided by; 0 takes the likeliest token. */
  readonly temperature?: number;
  /** How many of the likeliest tokens stay; 0: all. */
  readonly topK?: number;
  /** The likeliest tokens stay that together have this probability. */
  readonly topP?: number;
  /** Tokens stay that have this part of the likeliest token's probability. */
  readonly minP?: number;
  /** What the scores of tokens that were there before are divided by. */
  readonly repetitionPenalty?: number;
  /** What is taken off the scores of tokens that were drawn. */
  readonly presencePenalty?: number;
  /** What is taken off the scores of tokens for each time that they were drawn. */
  readonly frequencyPenalty?: number;
  /** What is added to the scores of tokens, by their ids. */
  readonly logitBias?: Readonly<Record<number, number>>;
  /** Of the draws: the same seed gives the same answer. */
  readonly seed?: number | bigint;
}

/** How an answer is written. */
export interface AnswerOptions extends SamplingOptions {
  /** The most tokens of an answer: 128 unless the model's files say another number. */
  readonly maxNewTokens?: number;
  /** Tokens that end the answer; those of the model's files unless given. */
  readonly stopTokens?: readonly number[];
  /**
   * Ends writing: the promise rejects with the signal's reason. In a worker that shares memory with this thread also in the
   * middle of a prompt or a token, else before the next token.
   */
  readonly signal?: AbortSignal;
}

export interface GenerationOptions extends AnswerOptions {
  /** Texts that end the answer. They are not part of it. */
  readonly stop?: string | readonly string[];
  /** JSON schemas of functions that the model may call, for a conversation. */
  readonly tools?: readonly Readonly<Record<string, unknown>>[];
}

/** An answer. */
export interface Completion {
  readonly text: string;
  readonly tokens: readonly number[];
  /** Whether the model ended it, or it has as many tokens as it may have. */
  readonly finishReason: "stop" | "length";
  /** The number of tokens of the prompt. */
  readonly promptTokens: number;
}

/** The names of options of every answer. */
export const ANSWER_OPTIONS: OptionNames<AnswerOptions> = {
  temperature: true,
  topK: true,
  topP: true,
  minP: true,
  repetitionPenalty: true,
  presencePenalty: true,
  frequencyPenalty: true,
  logitBias: true,
  seed: true,
  maxNewTokens: true,
  stopTokens: true,
  signal: true,
};

/** Seconds between two looks at the signal, where tokens take less. Meanwhile a page of a session on its thread is frozen. */
const SLICE = 0.03;

/** A part of an answer: the number of the answer, text, tokens, and at the end why it ended. */
export type AnswerPiece = readonly [
  answer: number,
  text: string,
  tokens: readonly number[],
  finishReason: Completion["finishReason"] | null,
];

interface Advance {
  readonly pieces: readonly AnswerPiece[];
  readonly done: boolean;
  readonly prompt_tokens?: readonly number[];
}

/** What Python writes in one slice of time after the other; at the end the numbers of tokens of the prompts. */
export async function* writeAnswers(
  session: Session,
  start: () => Promise<number>,
  signal: AbortSignal | undefined,
): AsyncGenerator<readonly AnswerPiece[], readonly number[]> {
  signal?.throwIfAborted();
  const answers = new Handle(session, await start());
  let isDone = false;
  try {
    for (;;) {
      signal?.throwIfAborted();
      const given = [answers, SLICE];
      const state = (await session.valueWaiting("$pipelines.Answers.advance", given, signal)) as Advance;
      isDone = state.done;
      signal?.throwIfAborted();
      yield state.pieces;
      if (state.prompt_tokens !== undefined) return state.prompt_tokens;
      // A signal, and a page on this thread, need the event loop.
      if (session.transport.synchronous) await new Promise((resolve) => setTimeout(resolve, 0));
    }
  } finally {
    if (!isDone) session.run("$pipelines.Answers.cancel", [answers]);
    answers.dispose();
  }
}

/** Whole answers, of the pieces of `writeAnswers`. */
export async function joinAnswers(
  answers: AsyncGenerator<readonly AnswerPiece[], readonly number[]>,
): Promise<Completion[]> {
  const joiner = new Joiner();
  for (;;) {
    const { value, done } = await answers.next();
    if (done === true) return joiner.completions(value);
    joiner.add(value);
  }
}

/** The texts of one answer as they come; at the end the whole answer. */
export async function* streamAnswer(
  answers: AsyncGenerator<readonly AnswerPiece[], readonly number[]>,
): AsyncGenerator<string, Completion, undefined> {
  const joiner = new Joiner();
  try {
    for (;;) {
      const { value, done } = await answers.next();
      if (done === true) {
        return joiner.completions(value)[0] ?? NOTHING;
      }
      joiner.add(value);
      for (const [, text] of value) if (text !== "") yield text;
    }
  } finally {
    await answers.return([]);
  }
}

/** An answer of which nothing is known. */
const NOTHING: Completion = { text: "", tokens: [], finishReason: "stop", promptTokens: 0 };

/** Puts pieces of answers together. */
class Joiner {
  readonly #answers: { text: string; tokens: number[]; finishReason: Completion["finishReason"] | null }[] =
    [];

  add(pieces: readonly AnswerPiece[]): void {
    for (const [number, text, tokens, finishReason] of pieces) {
      const answer = (this.#answers[number] ??= { text: "", tokens: [], finishReason: null });
      answer.text += text;
      answer.tokens.push(...tokens);
      answer.finishReason = finishReason ?? answer.finishReason;
    }
  }

  completions(promptTokens: readonly number[]): Completion[] {
    return promptTokens.map((count, i) => {
      const { text = "", tokens = [], finishReason = null } = this.#answers[i] ?? {};
      return { text, tokens, finishReason: finishReason ?? "stop", promptTokens: count };
    });
  }
}
