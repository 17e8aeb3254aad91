/** What visitors of the playground write: conversations, and texts that the model learns. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { lastTurns } from "../playground/src/conversation";
import { learnedText } from "../playground/src/learned_text";

const said = (role: string, content: string) => ({ role, content });

test("a long conversation is cut before a question", () => {
  const talk = ["a", "b", "c"].flatMap((text) => [said("user", text), said("assistant", text)]);
  const asked = [...talk, said("user", "d")];
  assert.deepEqual(lastTurns(asked, 2), [said("user", "c"), said("assistant", "c"), said("user", "d")]);
  assert.deepEqual(lastTurns(asked, 4), asked);
  assert.deepEqual(lastTurns(asked, Infinity), asked);
  assert.deepEqual(lastTurns([said("system", "x"), ...asked], 9), [said("system", "x"), ...asked]);
});

test("lines with Q: and A: are dialogues", () => {
  const { kind, records } = learnedText("Q: Who?\r\nA: Me,\nand you.\n\nQ:How\nmany?\nA:  2 ");
  assert.equal(kind, "dialogue");
  assert.deepEqual(records, [
    { messages: [said("user", "Who?"), said("assistant", "Me,\nand you.")] },
    { messages: [said("user", "How\nmany?"), said("assistant", "2")] },
  ]);
});

test("other texts are prose, a record for each paragraph", () => {
  const { kind, records } = learnedText("  One\ntwo.\n \n\nA: is a letter.\n");
  assert.equal(kind, "prose");
  assert.deepEqual(records, [{ text: "One\ntwo." }, { text: "A: is a letter." }]);
});

test("texts without anything to learn are errors that name the line", () => {
  for (const [text, message] of [
    ["", /an empty one/],
    [" \n\n ", /an empty one/],
    ["Q: Who?", /line 1: expected an answer/],
    ["Q: Who?\nA: ", /line 1: expected an answer/],
    ["Q: Who?\nA: Me.\nQ: And?\n", /line 3: expected an answer/],
    ["Hello\nQ: Who?\nA: Me.", /line 1: expected a question.*Hello/],
    ["Q:\nA: Me.", /line 1: expected a question, got none/],
    ["Q: Who?\nA: Me.\nA: You.", /line 3: expected one answer/],
  ] as const) {
    assert.throws(() => learnedText(text), { name: "RangeError", message }, text);
  }
});
