/** A classifier's training step on batches of one size: what the demonstrations have in common. */

import type { Optimizer, Polygrad, Tensor } from "polygrad";

interface Classifier {
  /** Scores of the classes [batch, classes] of rows [batch, width]. */
  forward(rows: Tensor): Tensor;
}

export interface Training {
  /** Takes one step on what the batch holds now; its loss. */
  run(): Promise<number>;
  /** Releases the step; model and optimizer stay. */
  dispose(): void;
}

/**
 * The step of `model` on batches of rows `x`, one after the other, and their classes `y`. Both arrays are read anew for
 * each step. Settles once the step is compiled.
 */
export async function prepareTraining(
  pg: Polygrad,
  model: Classifier,
  optimizer: Optimizer,
  x: Float32Array<ArrayBuffer> | Int32Array<ArrayBuffer>,
  y: Int32Array<ArrayBuffer>,
): Promise<Training> {
  // What is handed over belongs to the worker from then on: a copy.
  const batch = (): readonly [Tensor, Tensor] => [
    new pg.Tensor(x.slice(), { shape: [y.length, x.length / y.length] }),
    new pg.Tensor(y.slice()),
  ];
  const first = batch();
  const step = pg.compileStep(
    (m: Classifier, rows: Tensor, classes: Tensor) => m.forward(rows).sparseCategoricalCrossentropy(classes),
    model,
    optimizer,
    ...first,
  );
  await step.ready();
  return {
    async run() {
      const inputs = batch();
      const result = step.run(...inputs);
      const loss = Number(await result.item());
      pg.dispose(result, ...inputs);
      return loss;
    },
    dispose() {
      pg.dispose(step, ...first);
    },
  };
}
