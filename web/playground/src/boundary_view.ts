/** The plane: which class a network sees where, and the points that it learns from. */

import { colorOf } from "./chart";
import { element } from "./dom";
import type { Points } from "./boundary_data";

/** The plane is looked at in so many places a side. */
export const SIDE = 60;
const POINT_RADIUS = 4.5;
const REACH = 1.1; // the plane goes from -REACH to REACH

/** The places, row by row from the top, `x` and `y` one after the other. */
export function placesOfPlane(): Float32Array<ArrayBuffer> {
  const places = new Float32Array(2 * SIDE * SIDE);
  for (let i = 0; i < SIDE * SIDE; i++) {
    const [column, row] = [i % SIDE, Math.floor(i / SIDE)];
    places[2 * i] = REACH * ((2 * (column + 0.5)) / SIDE - 1);
    places[2 * i + 1] = REACH * (1 - (2 * (row + 0.5)) / SIDE);
  }
  return places;
}

/** Red, green and blue of a colour like #2456d6. */
function channelsOf(color: string): readonly [number, number, number] {
  const value = parseInt(color.slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

export class PlaneView {
  readonly #canvas: HTMLCanvasElement;
  readonly #plane = document.createElement("canvas");
  #points: Points | undefined;
  #probabilities: ArrayLike<number> = [];

  constructor(id: string) {
    this.#canvas = element(id, HTMLCanvasElement);
    this.#plane.width = this.#plane.height = SIDE;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.#draw();
    });
  }

  /** Show points, and no boundary. */
  showPoints(points: Points): void {
    this.#points = points;
    this.#probabilities = [];
    this.#draw();
  }

  /** Show the probability of the second class in each place. */
  showPlane(probabilities: ArrayLike<number>): void {
    this.#probabilities = probabilities;
    this.#draw();
  }

  #draw(): void {
    const context = this.#canvas.getContext("2d");
    if (context === null)
      throw new Error("boundaries: expected a browser that draws, got one without canvas");
    const { width, height } = this.#canvas;
    context.clearRect(0, 0, width, height);
    const colors = [colorOf("--accent-solid"), colorOf("--second-solid")] as const;
    if (this.#probabilities.length > 0) {
      this.#drawPlane(colors);
      context.imageSmoothingEnabled = true;
      context.imageSmoothingQuality = "high";
      context.drawImage(this.#plane, 0, 0, width, height);
    }
    this.#drawPoints(context, colors);
  }

  #drawPlane(colors: readonly [string, string]): void {
    const context = this.#plane.getContext("2d");
    if (context === null) return;
    const image = context.createImageData(SIDE, SIDE);
    const channels = [channelsOf(colors[0]), channelsOf(colors[1])] as const;
    for (let i = 0; i < SIDE * SIDE; i++) {
      const p = this.#probabilities[i] ?? 0;
      const color = channels[p > 0.5 ? 1 : 0];
      image.data.set([...color, 25 + 190 * Math.abs(p - 0.5)], 4 * i);
    }
    context.putImageData(image, 0, 0);
  }

  #drawPoints(context: CanvasRenderingContext2D, colors: readonly [string, string]): void {
    const { places, classes } = this.#points ?? { places: [], classes: [] };
    const size = this.#canvas.width;
    context.strokeStyle = colorOf("--card-solid");
    context.lineWidth = 1.5;
    for (let i = 0; i < classes.length; i++) {
      const [x = 0, y = 0] = [places[2 * i], places[2 * i + 1]];
      context.fillStyle = colors[classes[i] === 1 ? 1 : 0];
      context.beginPath();
      const [column, row] = [((x / REACH + 1) / 2) * size, ((1 - y / REACH) / 2) * size];
      // classes differ in more than their colour
      if (classes[i] === 1)
        context.rect(column - POINT_RADIUS, row - POINT_RADIUS, 2 * POINT_RADIUS, 2 * POINT_RADIUS);
      else context.arc(column, row, POINT_RADIUS, 0, 2 * Math.PI);
      context.fill();
      context.stroke();
    }
  }
}
