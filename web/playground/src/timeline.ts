/** The launches of one call, one below the other: each a bar from where it starts, as long as it takes. */

import { Choice, make } from "./dom";
import type { Launch, Launched } from "./inspected";

export function timeOf(seconds: number): string {
  if (seconds === 0) return "0 µs";
  const [value, unit] =
    seconds < 1e-3 ? [seconds * 1e6, "µs"] : seconds < 1 ? [seconds * 1e3, "ms"] : [seconds, "s"];
  return `${value < 1000 ? value.toPrecision(3) : value.toFixed(0)} ${unit}`;
}

/** A count of something with a decimal prefix: 12.3 k. */
export function countOf(value: number): string {
  const prefixes = ["", "k", "M", "G", "T"];
  const power = value < 1000 ? 0 : Math.min(Math.floor(Math.log10(value) / 3), prefixes.length - 1);
  const scaled = value / 1000 ** power;
  return `${power === 0 ? scaled.toFixed(0) : scaled.toPrecision(3)} ${prefixes[power] ?? ""}`.trimEnd();
}

/** Work in a second, with a prefix that fits: 12.3 GFLOP/s. */
export function rateOf(amount: number, seconds: number, unit: string): string {
  const text = countOf(amount / seconds);
  return `${text}${/[kMGT]$/.test(text) ? "" : " "}${unit}/s`;
}

/** A kernel's name without the digest at its end. */
export function shortName(name: string): string {
  return name.replace(/_[0-9a-f]{16}$/, "");
}

export class Timeline {
  readonly element = make("div", "timeline");
  readonly #rows = make("div", "timeline-rows");
  readonly #readout = make("p", "readout muted");
  readonly #select: (launch: number) => void;

  /** `select` is told of the launch that is looked at. */
  constructor(select: (launch: number) => void) {
    this.#select = select;
    this.element.append(this.#rows, this.#readout);
  }

  /** Show what was launched, and choose the launch that took longest. */
  show(launched: Launched): void {
    const total = launched.launches.reduce((sum, { seconds }) => sum + seconds, 0);
    let start = 0;
    const words: string[] = [];
    const rows = launched.launches.map((launch, i) => {
      const bar = make("span", "launch-bar");
      bar.style.left = `${(100 * start) / total}%`;
      bar.style.width = `${(100 * launch.seconds) / total}%`;
      words.push(this.#words(launched, launch, i, start));
      start += launch.seconds;
      const name = make("code", "", shortName(launched.kernels[launch.kernel]?.name ?? ""));
      const track = make("span", "launch-track", bar);
      return [name, track, make("span", "launch-time", timeOf(launch.seconds))];
    });
    const tell = (i: number): void => {
      this.#readout.textContent = words[i] ?? "";
    };
    const choice = new Choice("options", "launch", rows, (i) => {
      tell(i);
      this.#select(i);
    });
    Array.from(choice.element.querySelectorAll("label")).forEach((label, i) => {
      label.title = words[i] ?? "";
      label.addEventListener("pointerenter", () => {
        tell(i);
      });
      label.addEventListener("pointerleave", () => {
        tell(choice.chosen);
      });
    });
    this.#rows.replaceChildren(choice.element);
    const times = launched.launches.map(({ seconds }) => seconds);
    const longest = times.indexOf(Math.max(...times));
    choice.choose(longest);
    tell(longest);
    if (longest >= 0) this.#select(longest);
  }

  #words({ kernels }: Launched, { kernel, seconds, buffers }: Launch, i: number, start: number): string {
    const { name = "", flops = 0, bytes = 0 } = kernels[kernel] ?? {};
    const [written, ...read] = buffers;
    return [
      `${i + 1}. ${name}`,
      `from ${timeOf(start)} for ${timeOf(seconds)}`,
      `${countOf(flops)} floating-point operations`,
      `${countOf(bytes)}B of memory`,
      `writes ${written ?? ""}${read.length > 0 ? `, reads ${read.join(", ")}` : ""}`,
    ].join(" · ");
  }
}
