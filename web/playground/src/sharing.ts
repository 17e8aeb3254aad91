/**
 * Links that hold a program: `#editor/EXAMPLE/PROGRAM`, compressed. Nothing behind `#` is sent to a server.
 *
 * EXAMPLE is the example that the program was made of: it says the language, and which files the program reads.
 */

/** A program of a link. Links come from strangers: whoever opens one does not run it. */
export interface SharedProgram {
  readonly example: string;
  readonly text: string;
}

/** A link to more characters than this is none: a short one can be made that unpacks to gigabytes. */
const MAX_CHARACTERS = 1_000_000;

const FORMAT = "deflate-raw";

function toBase64Url(bytes: Uint8Array): string {
  const text = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function fromBase64Url(text: string): Uint8Array<ArrayBuffer> {
  const decoded = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(decoded, (character) => character.charCodeAt(0));
}

/** The text in compressed bytes. Throws for damaged ones, and for a text that is too long. */
async function decompressed(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(FORMAT));
  const reader = stream.pipeThrough(new TextDecoderStream("utf-8", { fatal: true })).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return text;
    text += value;
    if (text.length > MAX_CHARACTERS) {
      await reader.cancel();
      throw new RangeError(`expected a program of at most ${MAX_CHARACTERS} characters`);
    }
  }
}

/** The part of a link behind `#` that holds `program`. */
export async function fragmentOf({ example, text }: SharedProgram): Promise<string> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream(FORMAT));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  return `#editor/${encodeURIComponent(example)}/${toBase64Url(bytes)}`;
}

/** The program in a link; undefined where the link holds none. Throws for a damaged link. */
export async function programIn(fragment: string): Promise<SharedProgram | undefined> {
  const [, example, packed] = /^#editor\/([^/]+)\/([^/]+)$/.exec(fragment) ?? [];
  if (example === undefined || packed === undefined) return undefined;
  try {
    return { example: decodeURIComponent(example), text: await decompressed(fromBase64Url(packed)) };
  } catch (error) {
    throw new Error(`the link to a program is damaged: ${String(error)}`, { cause: error });
  }
}
