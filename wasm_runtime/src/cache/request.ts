/**
 * Requests for files of which something is stored: whether they are still the same, and the rest of them (RFC 9110, 9111).
 * A server's answer is never trusted to be what was asked for: it is compared with what is known of the file.
 */

import { FetchError } from "../errors";
import { checked, request } from "../source";

/** What tells the contents of a file at an address from others. */
export interface Version {
  readonly etag?: string | undefined;
  readonly lastModified?: string | undefined;
  /** The length of the whole file, where it is certain. */
  readonly length?: number | undefined;
  /** A validator that is another for every other sequence of bytes. */
  readonly strong?: string | undefined;
}

/** An answer to a request for the bytes from `start`. */
export interface Answer {
  readonly response: Response;
  readonly start: number;
  /** Whether the file is the known one. */
  readonly isSame: boolean;
}

/** The date of a header in milliseconds; NaN for none. */
const timeOf = (date: string | null): number => (date === null ? NaN : Date.parse(date));

/** A date is a strong validator when the file was at rest for so long (RFC 9110, section 8.8.2.2). */
const AT_REST = 60_000; // milliseconds

/** Whether a page may not send what it likes to `url`, nor see all that its server answers. */
function isForeign(url: string): boolean {
  const { location } = globalThis as { location?: { origin: string } };
  return location !== undefined && new URL(url).origin !== location.origin;
}

/** The version of a file that a response has, with its status 200 or 304. */
export function versionOf(url: string, { headers, url: from }: Response): Version {
  const [etag, lastModified] = [headers.get("etag"), headers.get("last-modified")];
  const rest = (timeOf(headers.get("date")) || Date.now()) - timeOf(lastModified);
  const strong = etag?.startsWith("W/") ? null : (etag ?? (rest >= AT_REST ? lastModified : null));
  // The length is that of the compressed file; of other origins' answers one does not see whether they are compressed.
  const isUncertain = isForeign(from || url) || headers.has("content-encoding");
  const length = isUncertain ? null : headers.get("content-length");
  return {
    etag: etag ?? undefined,
    lastModified: lastModified ?? undefined,
    length: length === null ? undefined : Number(length),
    strong: strong ?? undefined,
  };
}

const withoutWeak = (etag: string): string => etag.replace(/^W\//, "");

/** Whether two versions are one: by their tags, or else by their dates and lengths. */
export function isSameVersion(a: Version, b: Version): boolean {
  if (a.etag !== undefined || b.etag !== undefined) {
    return a.etag !== undefined && b.etag !== undefined && withoutWeak(a.etag) === withoutWeak(b.etag);
  }
  const isLength = a.length === undefined || b.length === undefined || a.length === b.length;
  return a.lastModified !== undefined && a.lastModified === b.lastModified && isLength;
}

/** Revisions of HuggingFace's hub that are a commit. */
const COMMIT = /\/resolve\/[0-9a-f]{40}\//;

/** Until when a file may be used without asking, in milliseconds; undefined where it may not be stored. */
export function freshUntil(url: string, { headers }: Response, now: number): number | undefined {
  const control = headers.get("cache-control")?.toLowerCase() ?? "";
  if (/\bno-store\b/.test(control)) return undefined;
  if (/\bimmutable\b/.test(control) || COMMIT.test(new URL(url).pathname)) return Number.MAX_SAFE_INTEGER;
  if (/\bno-cache\b/.test(control)) return now;
  const seconds = Number(/\bmax-age=(\d+)/.exec(control)?.[1] ?? 0) - Number(headers.get("age") ?? 0);
  return now + 1000 * Math.max(0, seconds || 0);
}

/** Nobody waits for a response any more. */
export function discard(response: Response | undefined): void {
  void response?.body?.cancel().catch(() => undefined); // a stream that is read is cancelled by its reader
}

/** A request beside the browser's own cache, which would store the file once more. */
const send = (
  url: string,
  what: string,
  signal: AbortSignal | undefined,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> => request(url, what, { signal, headers, cache: "no-store" });

/** `send`; without the headers, where a page gets no answer: another origin, to which the server sends it, forbids them. */
async function sendConditions(
  url: string,
  what: string,
  signal: AbortSignal | undefined,
  headers: Readonly<Record<string, string>>,
): Promise<Response> {
  try {
    return await send(url, what, signal, headers);
  } catch (error) {
    const isPlain = Object.keys(headers).length === 0;
    if (isPlain || signal?.aborted || !("location" in globalThis)) throw error;
    return send(url, what, signal);
  }
}

/** `response`, with a whole file. Throws FetchError for a status that is an error, and for a part that nobody asked for. */
function wholeOf(response: Response, what: string, url: string): Response {
  checked(response, what, url);
  if (response.status !== 206) return response;
  discard(response);
  throw new FetchError(`${what}: expected the whole file at ${url}, got a part of it`, { url, status: 206 });
}

/** Ask for a whole file, of which `known` is stored. Rejects as `fetchFile`. */
export async function askWhole(
  url: string,
  known: Version | undefined,
  what: string,
  signal?: AbortSignal,
): Promise<Answer> {
  const headers: Record<string, string> = {};
  // Other origins have to allow these headers first, and few do. Their validators are compared instead.
  if (known !== undefined && !isForeign(url)) {
    if (known.etag !== undefined) headers["If-None-Match"] = known.etag;
    else if (known.lastModified !== undefined) headers["If-Modified-Since"] = known.lastModified;
  }
  const response = await sendConditions(url, what, signal, headers);
  if (response.status === 304 && known !== undefined) return { response, start: 0, isSame: true };
  wholeOf(response, what, url);
  const isSame = known !== undefined && isSameVersion(known, versionOf(url, response));
  return { response, start: 0, isSame };
}

/**
 * Ask for the bytes from `start` of a file whose version is `known`. The answer begins with them, or with the first byte.
 * Rejects as `fetchFile`.
 */
export async function askRest(
  url: string,
  known: Version,
  start: number,
  what: string,
  signal?: AbortSignal,
): Promise<Answer> {
  if (start > 0 && known.strong !== undefined) {
    const headers: Record<string, string> = { Range: `bytes=${start}-` };
    const isForeignUrl = isForeign(url);
    if (!isForeignUrl) headers["If-Range"] = known.strong;
    const response = await sendConditions(url, what, signal, headers);
    if (response.ok && response.status !== 206) return answerOf(url, known, response);
    if (response.status === 206 && isRest(response, known, start, isForeignUrl)) {
      return { response, start, isSame: true };
    }
    discard(response);
  }
  return answerOf(url, known, wholeOf(await send(url, what, signal), what, url));
}

function answerOf(url: string, known: Version, response: Response): Answer {
  return { response, start: 0, isSame: isSameVersion(known, versionOf(url, response)) };
}

/** The first byte and the length of the whole file, as a part's headers tell. */
export function rangeOf({ headers }: Response): { start: number; total: number | undefined } | undefined {
  const [, start, total] = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(headers.get("content-range") ?? "") ?? [];
  if (start === undefined) return undefined;
  return { start: Number(start), total: total === "*" ? undefined : Number(total) };
}

/**
 * Whether a part begins at `start` of the known file. The server was not asked to compare, where `isUnconditional`: then the
 * response has to show the validator.
 */
function isRest(response: Response, known: Version, start: number, isUnconditional: boolean): boolean {
  const { headers } = response;
  const range = rangeOf(response);
  if (range?.start !== start || headers.has("content-encoding")) return false;
  if (range.total !== undefined && known.length !== undefined && range.total !== known.length) return false;
  const [etag, lastModified] = [headers.get("etag"), headers.get("last-modified")];
  if (etag !== null && known.etag !== undefined && etag !== known.etag) return false;
  if (lastModified !== null && known.lastModified !== undefined && lastModified !== known.lastModified) {
    return false;
  }
  return !isUnconditional || known.strong === etag || known.strong === lastModified;
}
