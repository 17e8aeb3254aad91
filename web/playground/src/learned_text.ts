/** The text that a visitor gives the model to learn, as records that `polygrad.tuning` trains on. */

import type { ChatMessage } from "polygrad";

export type LearnedRecord = { readonly text: string } | { readonly messages: readonly ChatMessage[] };

export interface LearnedText {
  /** Whether it is questions and answers, or prose. */
  readonly kind: "dialogue" | "prose";
  readonly records: readonly LearnedRecord[];
}

const QUESTION = /^Q:\s*/;
const ANSWER = /^A:\s*/;

/**
 * Lines that begin with `Q:` are questions, those with `A:` their answers; further lines belong to the line before. A
 * text without questions is prose, of which each paragraph is a text. Throws RangeError for a text that is neither.
 */
export function learnedText(text: string): LearnedText {
  const lines = text.split(/\r?\n/);
  if (lines.some((line) => QUESTION.test(line))) return { kind: "dialogue", records: dialogue(lines) };
  const paragraphs = text
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.trim())
    .filter((paragraph) => paragraph !== "");
  if (paragraphs.length === 0) throw new RangeError("expected a text to learn from, got an empty one");
  return { kind: "prose", records: paragraphs.map((paragraph) => ({ text: paragraph })) };
}

function dialogue(lines: readonly string[]): LearnedRecord[] {
  const pairs: { question: string; answer: string | undefined; line: number }[] = [];
  for (const [i, line] of lines.entries()) {
    const pair = pairs.at(-1);
    if (QUESTION.test(line)) {
      pairs.push({ question: line.replace(QUESTION, ""), answer: undefined, line: i + 1 });
    } else if (line.trim() === "") {
      continue;
    } else if (pair === undefined) {
      throw new RangeError(`line ${i + 1}: expected a question, “Q: …”, got “${line.slice(0, 40)}”`);
    } else if (ANSWER.test(line)) {
      if (pair.answer !== undefined)
        throw new RangeError(`line ${i + 1}: expected one answer to a question, got two`);
      pair.answer = line.replace(ANSWER, "");
    } else if (pair.answer === undefined) {
      pair.question += `\n${line}`;
    } else {
      pair.answer += `\n${line}`;
    }
  }
  return pairs.map(({ question, answer, line }) => {
    if (question.trim() === "") throw new RangeError(`line ${line}: expected a question, got none`);
    if (answer === undefined || answer.trim() === "") {
      throw new RangeError(`line ${line}: expected an answer, “A: …”, to the question, got none`);
    }
    return {
      messages: [
        { role: "user", content: question.trim() },
        { role: "assistant", content: answer.trim() },
      ],
    };
  });
}
