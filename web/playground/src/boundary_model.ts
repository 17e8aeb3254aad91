/** The network that tells two classes in the plane apart, as the visitor has chosen it. */

import type { Optimizer, Polygrad, Tensor } from "polygrad";

import exporter from "./boundary_export.py";

export const ACTIVATIONS = ["relu", "tanh", "sigmoid", "gelu"] as const;
export type Activation = (typeof ACTIVATIONS)[number];

export const OPTIMIZERS = ["Adam", "SGD"] as const;
export type OptimizerName = (typeof OPTIMIZERS)[number];

export interface Settings {
  readonly data: string;
  readonly noise: number;
  readonly layers: number;
  readonly width: number;
  readonly activation: Activation;
  readonly optimizer: OptimizerName;
  readonly learningRate: number;
  readonly weightDecay: number;
}

/** The most points that an exported network takes at once. */
export const MAX_POINTS = 4096;

export class Network {
  readonly layers;
  /** How many numbers are trained. */
  readonly size: number;
  readonly #activation: Activation;

  constructor({ nn }: Polygrad, { layers, width, activation }: Settings) {
    const widths = [2, ...Array.from({ length: layers }, () => width), 2];
    this.layers = widths.slice(1).map((out, i) => new nn.Linear(widths[i] ?? 0, out));
    this.size = widths.slice(1).reduce((sum, out, i) => sum + out * ((widths[i] ?? 0) + 1), 0);
    this.#activation = activation;
  }

  /** Scores of the classes [n, 2] of points [n, 2]. */
  forward(points: Tensor): Tensor {
    return this.layers.reduce((x, layer, i) => layer.forward(i === 0 ? x : x[this.#activation]()), points);
  }

  /** This network as a file that runs without Python: points [n, 2] to probabilities of the second class [n]. */
  async export(pg: Polygrad): Promise<Uint8Array<ArrayBuffer>> {
    const layers = await Promise.all(
      this.layers.map(async ({ weight, bias }) => [await weight.tolist(), await bias?.tolist()]),
    );
    const given = [layers, this.#activation, MAX_POINTS].map((x) => JSON.stringify(x)).join(", ");
    return (await pg.python(`${exporter}\nexported(${given})`)) as Uint8Array<ArrayBuffer>;
  }
}

export function optimizerOf(pg: Polygrad, network: Network, settings: Settings): Optimizer {
  const parameters = pg.nn.state.getParameters(network);
  const { learningRate: lr, weightDecay } = settings;
  if (settings.optimizer === "SGD") return new pg.optim.SGD(parameters, { lr, momentum: 0.9, weightDecay });
  return new pg.optim.AdamW(parameters, { lr, weightDecay });
}
