/** A square to draw a digit in, and the drawing as the data's images are made: 8x8 counts of ink, 0 to 16. */

/** Images are as large as this; the data's were made of bitmaps of four times the size. */
export const SIDE = 8;
const FINE = 32;
const BRUSH = 0.105; // of the side: in the data a stroke is about a cell and a half wide

export class Drawing {
  readonly #canvas: HTMLCanvasElement;
  readonly #context: CanvasRenderingContext2D;
  #last: { readonly x: number; readonly y: number } | undefined;
  #empty = true;

  /** `changed` is told of every stroke while it is drawn. */
  constructor(canvas: HTMLCanvasElement, changed: () => void) {
    this.#canvas = canvas;
    const context = canvas.getContext("2d", { willReadFrequently: true });
    if (context === null) throw new Error("drawing: expected a browser that draws, got one without canvas");
    this.#context = context;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.#last = this.#place(event);
      this.#stroke(event);
      changed();
    });
    canvas.addEventListener("pointermove", (event) => {
      if (this.#last === undefined) return;
      this.#stroke(event);
      changed();
    });
    const end = (): void => {
      this.#last = undefined;
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
  }

  isEmpty(): boolean {
    return this.#empty;
  }

  clear(): void {
    this.#context.clearRect(0, 0, this.#canvas.width, this.#canvas.height);
    this.#empty = true;
  }

  /** Show an image of the data, as large as the square. */
  show(image: ArrayLike<number>): void {
    this.clear();
    const cell = this.#canvas.width / SIDE;
    this.#context.fillStyle = getComputedStyle(this.#canvas).color;
    for (let i = 0; i < SIDE * SIDE; i++) {
      this.#context.globalAlpha = (image[i] ?? 0) / 16;
      this.#context.fillRect((i % SIDE) * cell, Math.floor(i / SIDE) * cell, cell, cell);
    }
    this.#context.globalAlpha = 1;
    this.#empty = false;
  }

  #place(event: PointerEvent): { x: number; y: number } {
    const box = this.#canvas.getBoundingClientRect();
    return {
      x: ((event.clientX - box.left) / box.width) * this.#canvas.width,
      y: ((event.clientY - box.top) / box.height) * this.#canvas.height,
    };
  }

  #stroke(event: PointerEvent): void {
    const context = this.#context;
    const [from, to] = [this.#last ?? this.#place(event), this.#place(event)];
    context.lineWidth = this.#canvas.width * BRUSH;
    context.lineCap = context.lineJoin = "round";
    context.strokeStyle = getComputedStyle(this.#canvas).color; // only how much of it there is counts
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.lineTo(to.x, to.y);
    context.stroke();
    this.#last = to;
    this.#empty = false;
  }

  /** The drawing as an image of the data: cut to its ink, as high as the image, in the middle of its width. */
  pixels(): Float32Array<ArrayBuffer> {
    const size = this.#canvas.width;
    const { data } = this.#context.getImageData(0, 0, size, size);
    const ink = (x: number, y: number): number => data[(y * size + x) * 4 + 3] ?? 0;
    let [left, top, right, bottom] = [size, size, 0, 0];
    for (let y = 0; y < size; y++) {
      for (let x = 0; x < size; x++) {
        if (ink(x, y) < 16) continue;
        [left, right] = [Math.min(left, x), Math.max(right, x + 1)];
        [top, bottom] = [Math.min(top, y), Math.max(bottom, y + 1)];
      }
    }
    const image = new Float32Array(SIDE * SIDE);
    if (right <= left) return image;
    const side = Math.max(right - left, bottom - top);
    const [x0, y0] = [(left + right - side) / 2, (top + bottom - side) / 2];
    const scale = side / FINE;
    for (let i = 0; i < FINE * FINE; i++) {
      const [column, row] = [i % FINE, Math.floor(i / FINE)];
      const [x, y] = [Math.floor(x0 + (column + 0.5) * scale), Math.floor(y0 + (row + 0.5) * scale)];
      if (x < 0 || y < 0 || x >= size || y >= size || ink(x, y) < 128) continue;
      const cell = Math.floor(row / 4) * SIDE + Math.floor(column / 4);
      image[cell] = (image[cell] ?? 0) + 1;
    }
    return image;
  }
}
