/** Files that arrive in pieces: from an address, a response or bytes, with progress and a way to stop. */

import { checkRedirection } from "./addresses";
import type { DownloadLimits } from "./download_limits";
import { FetchError } from "./errors";
import type { Tokenizers } from "./generation/tokenizer";
import { joined, once } from "./pieces";
import type { OnProgress, Progress } from "./progress";

/** How a file is read. */
export interface ReadOptions extends DownloadLimits {
  /** Is called while the file arrives. */
  readonly onProgress?: OnProgress | undefined;
  /** Stops reading: then the promise rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Whether a file at an address is kept for the next time, and read from what is kept; true unless given. */
  readonly cache?: boolean | undefined;
  /** The SHA-256 of the file in hexadecimal. A file with another one is an error. */
  readonly sha256?: string | undefined;
}

/** What `load` takes on every host. */
export interface ModelOptions extends ReadOptions {
  /**
   * The most threads that run a model which was exported on a host with threads. The default is the number of
   * processors, but at least 2 and at most 8. In a page threads need cross-origin isolation; without it there is one.
   */
  threads?: number;
  /** Of several devices that a file has code for, the one that runs it. Without it, the first that is there. */
  readonly device?: "WASM" | "WEBGPU" | undefined;
  /** The most memory that the model's buffers may take: weights, inputs, outputs, scratch. */
  readonly maxMemory?: number | undefined;
  /** The public key, of minisign, of whoever has to have signed the file. A file that is not signed by it is an error. */
  readonly publicKey?: string | undefined;
  /** The signature's address, or the signature. Without it, it is at the file's address with `.minisig`. */
  readonly signature?: string | URL | ByteSource | undefined;
}

/** What loaders of models that read or write text take. */
export interface TextModelOptions extends ModelOptions {
  /** The module `polygrad/runtime/tokenizers`, for texts and conversations. Without it there are tokens alone. */
  readonly tokenizers?: Tokenizers;
}

/** Bytes, or a response with them. */
export type ByteSource = ArrayBuffer | Uint8Array | Response;

/** A file that arrives in pieces, and its length if that is known. */
export interface OpenedFile {
  readonly pieces: AsyncIterable<Uint8Array>;
  readonly length?: number | undefined;
  /** The media type that a server tells. */
  readonly type?: string | undefined;
  /** How many bytes come from the cache. They come first. */
  readonly cached?: number | undefined;
}

/**
 * The response of `url`. `what`: the name of the calling function, for errors. Rejects with FetchError when there is no
 * answer, or a status that is an error; with the signal's reason.
 */
export async function fetchFile(
  url: string | URL,
  what: string,
  signal?: AbortSignal,
  priority?: RequestPriority,
): Promise<Response> {
  return checked(await request(url, what, { signal, ...(priority && { priority }) }), what, String(url));
}

/** What a request has beside its address. */
export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly cache?: RequestCache;
  readonly priority?: RequestPriority;
}

/** Statuses of redirections. */
const REDIRECTIONS = new Set([301, 302, 303, 307, 308]);

/** The most redirections that are followed. */
const MAX_REDIRECTIONS = 20;

/**
 * `fetch`, where each address is checked before it is asked. A page does not see where its browser is sent until the last
 * answer is there, and a relative address is its own.
 */
async function fetchChecked(url: string, what: string, options: RequestInit): Promise<Response> {
  if ("location" in globalThis || !/^https?:/i.test(url)) return fetch(url, options);
  let address = url;
  for (let count = 0; count <= MAX_REDIRECTIONS; count++) {
    const response = await fetch(address, { ...options, redirect: "manual" });
    const target = response.headers.get("location");
    if (!REDIRECTIONS.has(response.status) || target === null) return response;
    await response.body?.cancel();
    address = new URL(target, address).href;
    await checkRedirection(url, address, what);
  }
  throw new Error(`more than ${MAX_REDIRECTIONS} redirections`);
}

/**
 * The response of `url`, whatever its status is. Rejects with FetchError when there is no answer, and as `checkRedirection`
 * when the server sends elsewhere.
 */
export async function request(
  url: string | URL,
  what: string,
  { signal, ...options }: RequestOptions,
): Promise<Response> {
  let response: Response;
  try {
    response = await fetchChecked(String(url), what, signal === undefined ? options : { ...options, signal });
    if (/^https?:/i.test(String(url)) && /^https?:/i.test(response.url)) {
      await checkRedirection(String(url), response.url, what).catch(async (error: unknown) => {
        await response.body?.cancel();
        throw error;
      });
    }
  } catch (error) {
    throw error instanceof FetchError ? error : failure(error, what, String(url), signal);
  }
  return response;
}

/** `response`. Throws FetchError for a status that is an error. */
export function checked(response: Response, what: string, url = response.url): Response {
  if (response.ok) return response;
  const { status } = response;
  throw new FetchError(`${what}: expected a file at ${url}, got status ${status}`, { url, status });
}

/** The error of a request that failed: the signal's reason, or a FetchError. */
function failure(error: unknown, what: string, url: string, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted) return signal.reason;
  const reason = error instanceof Error ? error.message : String(error);
  return new FetchError(`${what}: expected a file at ${url}, got no answer: ${reason}`, {
    url,
    cause: error,
  });
}

/** A response's body. The length is not known where the server compresses, as the header then tells another. */
export function openResponse(response: Response, what: string, signal?: AbortSignal): OpenedFile {
  const { headers, body, url } = response;
  const length = headers.has("content-encoding") ? null : headers.get("content-length");
  const pieces = body === null ? once(new Uint8Array()) : piecesOf(body);
  return {
    pieces: withFailures(pieces, (error) => failure(error, what, url, signal)),
    length: length === null ? undefined : Number(length),
    type: headers.get("content-type") ?? undefined,
  };
}

/** `pieces`, whose error is replaced by another. */
export async function* withFailures(
  pieces: AsyncIterable<Uint8Array>,
  errorOf: (error: unknown) => unknown,
): AsyncGenerator<Uint8Array> {
  try {
    yield* pieces;
  } catch (error) {
    throw errorOf(error);
  }
}

/** The pieces of a stream. Whoever stops reading cancels it. */
export async function* piecesOf<T = Uint8Array>(stream: ReadableStream<T>): AsyncGenerator<T> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined); // of a stream that failed
  }
}

/** The pieces of a file, as `onProgress` is told of them. Throws the reason of `signal`. */
export async function* measured(
  file: OpenedFile,
  { onProgress, signal }: ReadOptions,
): AsyncGenerator<Uint8Array> {
  const total = file.length;
  let loaded = 0;
  signal?.throwIfAborted();
  for await (const piece of file.pieces) {
    loaded += piece.byteLength;
    const fraction = total ? loaded / total : 0;
    onProgress?.({ stage: "download", fraction, loaded, total, ...cachedOf(file, loaded) });
    signal?.throwIfAborted();
    yield piece;
  }
  if (total) return;
  onProgress?.({ stage: "download", fraction: 1, loaded, total: loaded, ...cachedOf(file, loaded) });
}

/** How many of the `loaded` bytes of a file came from the cache, if there are any. */
export function cachedOf({ cached = 0 }: OpenedFile, loaded: number): Pick<Progress, "cached"> {
  return cached > 0 ? { cached: Math.min(cached, loaded) } : {};
}

/** All bytes of a file, in memory of their own. */
export async function collect(file: OpenedFile, options: ReadOptions): Promise<Uint8Array<ArrayBuffer>> {
  const pieces: Uint8Array[] = [];
  for await (const piece of measured(file, options)) pieces.push(piece);
  return joined(pieces);
}

/** A response or bytes, as a file. Throws FetchError for a response with an error status. */
export function openSource(source: ByteSource, what: string, signal?: AbortSignal): OpenedFile {
  const bytes = source instanceof ArrayBuffer ? new Uint8Array(source) : source;
  if (bytes instanceof Uint8Array) return { pieces: once(bytes), length: bytes.length };
  return openResponse(checked(bytes, what), what, signal);
}
