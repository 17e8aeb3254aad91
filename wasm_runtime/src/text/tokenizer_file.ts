/** The tokenizer of an exported model as a file, checked: what `polygrad/hf/tokenizer_export.py` writes. */

import { ProgramError } from "../errors";
import type { AddedToken } from "./added_tokens";
import type { DecoderEntry } from "./decoding";

/** A part of the tokens around a text: special ones, or those of text number `sequence`. */
export interface TemplatePiece {
  readonly ids: readonly number[];
  readonly sequence: number | null;
}

export interface TokenizerFile {
  readonly tokenizer: {
    readonly added_tokens: readonly AddedToken[];
    readonly decoder: DecoderEntry | null;
    readonly model: {
      readonly type: string;
      readonly vocab: Readonly<Record<string, number>> | readonly (readonly [string, number])[];
      readonly merges?: readonly (string | readonly string[])[];
    };
  };
  readonly special: Readonly<Record<string, string>>;
  readonly templates: Readonly<Record<string, string>>;
  readonly cleans_up: boolean;
  readonly single: readonly TemplatePiece[];
  readonly javascript: {
    readonly model: object;
    readonly normalizer: unknown;
    readonly pre_tokenizer: unknown;
  };
}

/** The file in `bytes`. Throws ProgramError for a damaged one, and for one that was exported for Python alone. */
export function readTokenizerFile(bytes: Uint8Array): TokenizerFile {
  let file: unknown;
  try {
    file = JSON.parse(new TextDecoder().decode(bytes));
  } catch (cause) {
    throw new ProgramError("tokenizer: expected JSON, got damaged bytes", { cause });
  }
  if (isObject(file) && file.javascript === undefined) {
    throw new ProgramError(
      "tokenizer: expected one for JavaScript, got one for Python: export the model on WASM",
    );
  }
  const parts = isObject(file) ? file : {};
  const wrong = Object.entries(PARTS).find(([name, check]) => !check(parts[name]));
  if (wrong === undefined) return file as TokenizerFile;
  throw new ProgramError(
    `tokenizer: ${wrong[0]} is missing, or is not what it has to be: the file is damaged`,
  );
}

// --- what each part has to be

type Check = (value: unknown) => boolean;

const MAX_DEPTH = 16; // decoders in each other, as in Python
const isText: Check = (value) => typeof value === "string";
const isFlag: Check = (value) => typeof value === "boolean";
const isCount: Check = (value) => Number.isSafeInteger(value) && (value as number) >= 0;
const isNumber: Check = (value) => typeof value === "number";

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const recordOf =
  (check: Check): Check =>
  (value) =>
    isObject(value) && Object.values(value).every(check);
const fields =
  (checks: Readonly<Record<string, Check>>): Check =>
  (value) =>
    isObject(value) && Object.entries(checks).every(([name, check]) => check(value[name]));
const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || value === null || check(value);

/** The fields of each kind of decoder. A kind that is not here is a newer one, which `decoding.ts` refuses. */
const DECODERS = new Map<unknown, Check>([
  ["BPEDecoder", fields({ suffix: isText })],
  ["Metaspace", fields({ replacement: isText, prepend_scheme: optional(isText) })],
  ["Replace", fields({ content: isText, pattern: fields({ String: isText }) })],
  ["Strip", fields({ content: isText, start: isCount, stop: isCount })],
  ["WordPiece", fields({ prefix: isText, cleanup: isFlag })],
]);

function isDecoder(value: unknown, depth: number): boolean {
  if (!isObject(value) || depth > MAX_DEPTH) return false;
  if (value.type === "Sequence") return listOf((entry) => isDecoder(entry, depth + 1))(value.decoders);
  return isText(value.type) && (DECODERS.get(value.type)?.(value) ?? true);
}

const isWord: Check = (value) => Array.isArray(value) && isText(value[0]) && isNumber(value[1]);
const isMerge: Check = (value) => isText(value) || listOf(isText)(value);

const PARTS: Readonly<Record<string, Check>> = {
  tokenizer: fields({
    added_tokens: listOf(
      fields({
        id: isCount,
        content: isText,
        ...{ single_word: isFlag, lstrip: isFlag, rstrip: isFlag, normalized: isFlag, special: isFlag },
      }),
    ),
    decoder: (value) => value === null || isDecoder(value, 0),
    model: fields({
      vocab: (value) => listOf(isWord)(value) || recordOf(isCount)(value),
      merges: optional(listOf(isMerge)),
    }),
  }),
  special: recordOf(isText),
  templates: recordOf(isText),
  cleans_up: isFlag,
  single: listOf(fields({ ids: listOf(isCount), sequence: (value) => value === null || isCount(value) })),
  javascript: fields({ model: isObject }),
};
