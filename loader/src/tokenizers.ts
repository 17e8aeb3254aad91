/**
 * `polygrad/runtime/tokenizers`: text for exported models, on `@huggingface/tokenizers` and `@huggingface/jinja`.
 *
 *     import { loadLanguageModel } from "polygrad/runtime";
 *     import * as tokenizers from "polygrad/runtime/tokenizers";
 *     const model = await loadLanguageModel("chat.pgrd", { tokenizers });
 */

import type { Tokenizer } from "../../wasm_runtime/src/generation/tokenizer";
import { ModelTokenizer } from "../../wasm_runtime/src/text/tokenizer";
import { HubTokenizer, renderTemplate } from "./hub";

export type {
  ChatOptions,
  Message,
  TextStream,
  Tokenizer,
} from "../../wasm_runtime/src/generation/tokenizer";

/** The tokenizer of an exported model, from its file. Throws ProgramError. */
export function openTokenizer(file: Uint8Array): Tokenizer {
  return new ModelTokenizer(file, { openWords: (data) => new HubTokenizer(data), renderTemplate });
}
