/** Text that comes in parts, up to the first of some strings: what may be the beginning of one waits until more is known. */

export class StopStrings {
  readonly #stops: readonly string[];
  #waiting = "";
  #found = false;

  constructor(stops: readonly string[]) {
    this.#stops = stops;
  }

  /** Whether one of the strings came. */
  isFound(): boolean {
    return this.#found;
  }

  /** The text that is certain to stand before any of the strings. */
  feed(part: string): string {
    const text = this.#waiting + part;
    this.#waiting = "";
    const places = this.#stops.map((stop) => text.indexOf(stop)).filter((place) => place >= 0);
    if (places.length > 0) {
      this.#found = true;
      return text.slice(0, Math.min(...places));
    }
    const overlap = Math.max(0, ...this.#stops.map((stop) => overlapOf(text, stop)));
    this.#waiting = text.slice(text.length - overlap);
    return text.slice(0, text.length - overlap);
  }

  /** What was waiting. */
  finish(): string {
    const text = this.#waiting;
    this.#waiting = "";
    return text;
  }
}

/** How many characters at the end of `text` are the beginning of `stop`. */
function overlapOf(text: string, stop: string): number {
  for (let n = Math.min(text.length, stop.length - 1); n > 0; n--) {
    if (text.endsWith(stop.slice(0, n))) return n;
  }
  return 0;
}
