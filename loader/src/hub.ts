/**
 * Text to tokens, and conversations to text, for Python's `polygrad.hf`: on `@huggingface/tokenizers` and
 * `@huggingface/jinja`. Python sends JSON, which it has checked, and reads plain values. A bundle of its own, that is
 * loaded when it is first asked for.
 */

import { Environment, Interpreter, parse, tokenize, type Template } from "@huggingface/jinja";
import { Tokenizer } from "@huggingface/tokenizers";

/** The words of a text as tokens; added tokens and what stands around a text are Python's business. */
export class HubTokenizer {
  readonly #tokenizer: Tokenizer;
  readonly #ids: ReadonlyMap<string, number>;
  readonly #unknown: number | undefined;

  /** `json`: in the words of `polygrad/hf/javascript_form.py`. */
  constructor(json: string) {
    const data = JSON.parse(json) as { model: { unk_token?: string } };
    this.#tokenizer = new Tokenizer(data, { unk_token: data.model.unk_token });
    const { model } = this.#tokenizer;
    if (model === null) throw new Error("internal: a tokenizer without a model");
    this.#ids = model.tokens_to_ids;
    this.#unknown = model.unk_token_id;
  }

  normalize(text: string): string {
    return this.#tokenizer.normalizer?.normalize(text) ?? text;
  }

  /** The ids of normalized text. `first`: whether it is at the beginning of the whole. */
  encode(text: string, first: boolean): Int32Array {
    const { pre_tokenizer: split, model } = this.#tokenizer;
    const words = split ? split.pre_tokenize(text, { section_index: first ? 0 : 1 }) : [text];
    const tokens = model?._call(words) ?? [];
    const ids = tokens.map((token) => this.#ids.get(token) ?? this.#unknown);
    return Int32Array.from(ids.filter((id) => id !== undefined));
  }
}
