/**
 * Decoding of tokens to text as they come: the decoders of tokenizer.json as a pipeline of stages, as in
 * `polygrad/hf/decoding.py`. Each stage gives the text that later tokens cannot change, and keeps the rest.
 */

import { ProgramError } from "../errors";

/** A decoder of a tokenizer.json, which Python has checked. */
export interface DecoderEntry {
  readonly type: string;
  readonly decoders?: readonly DecoderEntry[];
  readonly content?: string;
  readonly start?: number;
  readonly stop?: number;
  readonly prefix?: string;
  readonly cleanup?: boolean;
  readonly replacement?: string;
  readonly prepend_scheme?: string;
  readonly suffix?: string;
  readonly pattern?: { readonly String?: string };
}

/** A stage takes tokens or, after a stage that joins them, parts of the one joined token. */
interface Stage {
  feed(token: string): string[];
  finish(): string[];
  /** Whether it gives parts of one joined token. */
  readonly joins?: boolean;
}

/** A stage that looks at one token at a time. */
const each = (change: (token: string) => string, joins = false): Stage => ({
  feed: (token) => [change(token)],
  finish: () => [],
  joins,
});

/** GPT-2's character for each byte: itself if it is printable, else one from U+0100 on. */
function bytesByCharacter(): ReadonlyMap<string, number> {
  const isPrintable = (byte: number): boolean =>
    (byte >= 0x21 && byte < 0x7f) || (byte >= 0xa1 && byte !== 0xad);
  const out = new Map<string, number>();
  let others = 0;
  for (let byte = 0; byte < 256; byte++) {
    out.set(String.fromCharCode(isPrintable(byte) ? byte : 0x100 + others++), byte);
  }
  return out;
}

/** ByteLevel: characters that stand for bytes, and the text that these are in UTF-8. */
function joinBytes(): Stage {
  const bytes = bytesByCharacter();
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return {
    joins: true,
    feed(token) {
      const found = Array.from(token, (character) => bytes.get(character));
      const isText = found.includes(undefined);
      const raw = isText ? new TextEncoder().encode(token) : Uint8Array.from(found as number[]);
      return [decoder.decode(raw, { stream: true })];
    },
    finish: () => [decoder.decode()],
  };
}

/** ByteFallback: a run of tokens `<0xE2>` is text if its bytes are, else a U+FFFD for each. */
function joinByteTokens(): Stage {
  let run: number[] = [];
  const finish = (): string[] => {
    const bytes = Uint8Array.from(run);
    run = [];
    if (bytes.length === 0) return [];
    try {
      return [new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes)];
    } catch {
      return [...bytes].map(() => "\ufffd");
    }
  };
  return {
    feed(token) {
      const byte = /^<0x([0-9A-Fa-f]{2})>$/.exec(token)?.[1];
      if (byte === undefined) return [...finish(), token];
      run.push(parseInt(byte, 16));
      return [];
    },
    finish,
  };
}

/** WordPiece: a space before each token but the first and those that go on with a word. */
function joinWords(prefix: string, cleanup: boolean): Stage {
  let isFirst = true;
  return each((token) => {
    const text = isFirst ? token : token.startsWith(prefix) ? token.slice(prefix.length) : ` ${token}`;
    isFirst = false;
    return cleanup ? cleanUp(text).replaceAll(" do not", " don't") : text;
  });
}

/** Metaspace: the mark of a space is a space, and in the first token nothing. */
function spaceWords(mark: string, prepends: boolean): Stage {
  let space = prepends ? "" : " ";
  return each((token) => {
    const text = token.replaceAll(mark, space);
    space = " ";
    return text;
  });
}

/** BPEDecoder: the suffix of a word's last token is a space, and in the last token of all nothing. */
function endWords(suffix: string): Stage {
  let last: string | undefined;
  const replaced = (by: string): string[] =>
    last === undefined ? [] : [suffix === "" ? last : last.replaceAll(suffix, by)];
  return {
    feed(token) {
      const out = replaced(" ");
      last = token;
      return out;
    },
    finish: () => replaced(""),
  };
}

/** No decoder: tokens are joined with spaces. */
function spaceTokens(): Stage {
  let space = "";
  return each((token) => {
    const text = space + token;
    space = " ";
    return text;
  });
}

/** The length of what is `content`, up to `limit` times, at the beginning of a text or, backwards, at its end. */
function lengthOf(text: string, content: string, limit: number, backwards: boolean): number {
  let count = 0;
  const isNext = (): boolean => {
    const place = count * content.length;
    if (backwards) return text.slice(0, text.length - place).endsWith(content);
    return text.startsWith(content, place);
  };
  while (count < limit && isNext()) count++;
  return count * content.length;
}

/** Strip: up to `start` characters from the beginning of each token, and up to `stop` from its end. */
const strip = (content: string, start: number, stop: number): Stage =>
  each((token) => {
    const rest = token.slice(lengthOf(token, content, start, false));
    return rest.slice(0, rest.length - lengthOf(rest, content, stop, true));
  });

/** Strip, for the parts of one joined token. */
function stripJoined(content: string, start: number, stop: number): Stage {
  let left = start;
  let tail = ""; // what may be stripped from the end
  return each((token) => {
    const begin = lengthOf(token, content, left, false);
    left = begin === token.length ? left - begin / content.length : 0;
    const text = tail + token.slice(begin);
    const end = text.length - lengthOf(text, content, stop, true);
    tail = text.slice(end);
    return text.slice(0, end);
  }, true);
}

/** A stage that can give nothing before the end, when it gets the joined text. */
function waitForAll(stage: Stage): Stage {
  let all = "";
  return {
    joins: true,
    feed(token) {
      all += token;
      return [];
    },
    finish: () => [...stage.feed(all), ...stage.finish()],
  };
}

const CLEANED = [
  ...[" .", " ?", " !", " ,"].map((text) => [text, text.slice(1)]),
  [" ' ", "'"],
  ...[" n't", " 'm", " 's", " 've", " 're"].map((text) => [text, text.slice(1)]),
] as [string, string][];

/** Remove the spaces before punctuation and contractions. */
function cleanUp(text: string): string {
  return CLEANED.reduce((changed, [from, to]) => changed.replaceAll(from, to), text);
}

// A space that no replacement can begin after or end in.
const SAFE = /(?<! ')(?<! )(?= [^ .?!,'n])/g;

/** `cleanUp`, for the parts of one joined token: text that may still change waits. */
function cleanUpJoined(): Stage {
  let text = "";
  return {
    joins: true,
    feed(token) {
      text += token;
      const cut = [...text.matchAll(SAFE)].at(-1)?.index ?? 0;
      const out = text.slice(0, cut);
      text = text.slice(cut);
      return [cleanUp(out)];
    },
    finish() {
      const out = cleanUp(text);
      text = "";
      return [out];
    },
  };
}

/** Decodes tokens that come one by one. */
export class Decoder {
  readonly #stages: readonly Stage[];

  /** By the entry `decoder` of a tokenizer.json. `cleansUp`: whether the text is cleaned up at last. */
  constructor(entry: DecoderEntry | null, cleansUp: boolean) {
    const stages: Stage[] = entry === null ? [spaceTokens()] : [];
    let isJoined = false;
    for (const part of flat(entry)) {
      const stage: Stage = isJoined ? stageOfJoined(part) : stageOf(part);
      stages.push(stage);
      isJoined ||= stage.joins ?? false;
    }
    this.#stages = cleansUp ? [...stages, cleanUpJoined()] : stages;
  }

  /** The text that is certain now. */
  feed(token: string): string {
    return this.#through([token], 0).join("");
  }

  /** The text that was waiting for another token. */
  finish(): string {
    return this.#stages.flatMap((stage, i) => this.#through(stage.finish(), i + 1)).join("");
  }

  #through(tokens: readonly string[], first: number): readonly string[] {
    let out = tokens;
    for (const stage of this.#stages.slice(first)) out = out.flatMap((token) => stage.feed(token));
    return out;
  }
}

function flat(entry: DecoderEntry | null): readonly DecoderEntry[] {
  if (entry === null) return [];
  return entry.type === "Sequence" ? (entry.decoders ?? []).flatMap(flat) : [entry];
}

function stageOf(entry: DecoderEntry): Stage {
  const { type, content = "", start = 0, stop = 0 } = entry;
  switch (type) {
    case "ByteLevel":
      return joinBytes();
    case "ByteFallback":
      return joinByteTokens();
    case "Fuse":
      return each((token) => token, true);
    case "WordPiece":
      return joinWords(entry.prefix ?? "", entry.cleanup ?? false);
    case "Metaspace":
      return spaceWords(entry.replacement ?? "", (entry.prepend_scheme ?? "always") !== "never");
    case "BPEDecoder":
      return endWords(entry.suffix ?? "");
    case "Strip":
      return strip(content, start, stop);
    case "Replace": {
      const old = entry.pattern?.String ?? "";
      return each((token) => token.replaceAll(old, () => content));
    }
    default:
      throw new ProgramError(
        `tokenizer: expected a decoder that there is, got ${type}: use a newer polygrad`,
      );
  }
}

/** The stage for the one token that others were joined to. */
function stageOfJoined(entry: DecoderEntry): Stage {
  const { type, content = "", start = 0, stop = 0 } = entry;
  if (type === "Strip") return stripJoined(content, start, stop);
  const old = entry.pattern?.String ?? "";
  if (type === "Replace" && Array.from(old).length === 1) {
    return each((token) => token.replaceAll(old, () => content), true);
  }
  return type === "Fuse" ? each((token) => token, true) : waitForAll(stageOf(entry));
}
