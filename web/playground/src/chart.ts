/** A curve that grows while something trains. */

import uPlot from "uplot";

import { nextFrame } from "./dom";

/** One line of a chart: its name, a CSS variable with its colour, and the scale it is drawn on. */
export interface Line {
  readonly label: string;
  readonly color: string;
  readonly scale: "value" | "percent";
}

const HEIGHT = 220;

/** The colour in a CSS variable: canvases do not know them. */
export function colorOf(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

export class Chart {
  readonly #host: HTMLElement;
  readonly #lines: readonly Line[];
  #data: (number | null)[][];
  #plot: uPlot;
  #pending = false;

  constructor(host: HTMLElement, lines: readonly Line[]) {
    this.#host = host;
    this.#lines = lines;
    this.#data = this.#empty();
    this.#plot = this.#draw();
    new ResizeObserver(() => {
      const width = host.clientWidth;
      if (width > 0 && width !== this.#plot.width) this.#plot.setSize({ width, height: HEIGHT });
    }).observe(host);
    // Canvases do not follow CSS: the colours are taken anew.
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.#plot.destroy();
      this.#plot = this.#draw();
    });
  }

  /** How many points there are. */
  get length(): number {
    return this.#data[0]?.length ?? 0;
  }

  /** Add a point; null where a line has none. Points that arrive together are drawn together. */
  add(x: number, ...values: (number | null)[]): void {
    [x, ...values].forEach((value, i) => this.#data[i]?.push(value));
    this.#update();
  }

  clear(): void {
    this.#data = this.#empty();
    this.#update();
  }

  #empty(): (number | null)[][] {
    return Array.from({ length: this.#lines.length + 1 }, () => []);
  }

  #update(): void {
    if (this.#pending) return;
    this.#pending = true;
    void nextFrame().then(() => {
      this.#pending = false;
      this.#plot.setData(this.#data as uPlot.AlignedData);
    });
  }

  #draw(): uPlot {
    const [ink, grid] = [colorOf("--muted-solid"), colorOf("--line-solid")];
    const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 } };
    const percent = this.#lines.some(({ scale }) => scale === "percent");
    return new uPlot(
      {
        width: Math.max(this.#host.clientWidth, 200),
        height: HEIGHT,
        scales: { x: { time: false }, percent: { range: [0, 100] } },
        legend: { show: this.#lines.length > 1, live: false },
        cursor: { show: false },
        series: [
          { label: "step" },
          ...this.#lines.map(({ label, color, scale }) => ({
            label,
            scale,
            stroke: colorOf(color),
            width: 2,
            spanGaps: true,
            points: { show: false },
          })),
        ],
        axes: [
          axis,
          { ...axis, scale: "value", size: 52 },
          // eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment -- uPlot only declares its enum
          ...(percent
            ? [
                {
                  ...axis,
                  scale: "percent",
                  side: 1 as const, // the right
                  size: 52,
                  grid: { show: false },
                  values: (_: uPlot, ticks: number[]) => ticks.map((tick) => `${tick}%`),
                },
              ]
            : []),
        ],
      },
      this.#data as uPlot.AlignedData,
      this.#host,
    );
  }
}
