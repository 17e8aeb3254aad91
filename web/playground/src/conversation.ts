/** Conversations with a model, as messages. */

import type { ChatMessage } from "polygrad";

/** The end of a conversation, from the last `turns` questions on. */
export function lastTurns(messages: readonly ChatMessage[], turns: number): readonly ChatMessage[] {
  const questions = messages.flatMap(({ role }, i) => (role === "user" ? [i] : []));
  return messages.slice(questions.at(-turns) ?? 0);
}
