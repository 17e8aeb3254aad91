/** `pictures`: numbers as SVG text, which Python draws (polygrad/pictures). */

import { isTensorOf } from "./calls";
import type { Tensor } from "./generated/tensor";
import { tensorOf, type TensorData } from "./make";
import { checkOptions, type OptionNames } from "./options";
import type { Session } from "./session";

export interface PictureOptions {
  /** Above the picture; none unless given. */
  readonly title?: string;
}

export interface HistogramOptions extends PictureOptions {
  /** How many intervals there are; 30 unless given. */
  readonly bins?: number;
}

export interface ChartOptions extends PictureOptions {
  /** Below the axis of positions; "step" unless given. */
  readonly xLabel?: string;
  /** Whether the scale is logarithmic, for numbers above 0. */
  readonly log?: boolean;
}

/** Numbers as pictures: SVG text, for an element's `innerHTML` or a file. */
export interface Pictures {
  /**
   * Curves by name, over the positions of their numbers.
   *
   *     element.innerHTML = await pictures.chart({ loss: history.loss }, { log: true });
   *
   * Numbers that are not finite leave gaps. Rejects with ArgumentError where no number is finite.
   */
  chart(series: Readonly<Record<string, readonly number[]>>, options?: ChartOptions): Promise<string>;
  /**
   * How many numbers are in each of several intervals of equal width.
   *
   *     element.innerHTML = await pictures.histogram(layer.weight, { title: "weights" });
   *
   * Numbers that are not finite are left out. Rejects with ArgumentError where no number is finite.
   */
  histogram(values: Tensor | TensorData, options?: HistogramOptions): Promise<string>;
  /**
   * A matrix as colours, from its least number, dark, to its greatest. Numbers that are not finite are white. Rejects with
   * ArgumentError for another shape.
   */
  heatMap(values: Tensor | TensorData, options?: PictureOptions): Promise<string>;
  /**
   * Pixels, of shape [height, width] or [height, width, channels]: grey, grey with alpha, RGB, or RGB with alpha.
   * Integers are from 0 to 255, floats from 0 to 1. Rejects with ArgumentError for another shape.
   */
  image(pixels: Tensor | TensorData, options?: PictureOptions): Promise<string>;
}

const OF_PICTURES: OptionNames<PictureOptions> = { title: true };
const OF_HISTOGRAMS: OptionNames<HistogramOptions> = { title: true, bins: true };
const OF_CHARTS: OptionNames<ChartOptions> = { title: true, xLabel: true, log: true };

export function picturesOf(session: Session): Pictures {
  const draw = async (name: string, args: readonly unknown[]): Promise<string> =>
    (await session.valueWaiting(`$pictures.${name}`, args)) as string;
  const drawTensor = async (name: string, data: Tensor | TensorData, ...more: unknown[]): Promise<string> => {
    if (isTensorOf(session, data)) return draw(name, [data, ...more]);
    const tensor = tensorOf(session, data);
    try {
      return await draw(name, [tensor, ...more]);
    } finally {
      tensor.dispose();
    }
  };
  const drawPixels =
    (name: string, python: string): Pictures["image"] =>
    async (pixels, options = {}) => {
      checkOptions(name, options, OF_PICTURES);
      return drawTensor(python, pixels, options.title ?? "");
    };
  return {
    async chart(series, options = {}) {
      checkOptions("chart", options, OF_CHARTS);
      const { title = "", xLabel = "step", log = false } = options;
      return draw("chart", [series, title, xLabel, log]);
    },
    async histogram(values, options = {}) {
      checkOptions("histogram", options, OF_HISTOGRAMS);
      const { bins = 30, title = "" } = options;
      return drawTensor("histogram", values, bins, title);
    },
    heatMap: drawPixels("heatMap", "heat_map"),
    image: drawPixels("image", "image"),
  };
}
