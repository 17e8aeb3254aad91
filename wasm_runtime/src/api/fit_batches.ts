/**
 * The data of a training run: rows, which Python gathers on the device, or batches that are made on this side and fed to it. The
 * next batches are made while steps run: in a worker's session at the same time, else while this thread waits.
 */

import { abortable } from "../abort";
import { DEPTH, describe, Examples, type Part } from "./datasets/examples";
import { isItems, ItemSource, type ItemsOf } from "./datasets/item_source";
import { Prefetch } from "./datasets/prefetch";
import type { Keep, Kind, StepCapture } from "./fit_steps";
import { ArgumentError, PolygradError } from "./generated/errors";
import type { Tensor } from "./generated/tensor";
import { Handle } from "./handle";
import { tensorOf, tensorOfPacked, type TensorData } from "./make";
import type { PythonObject } from "./object";
import type { Session } from "./session";

/** Inputs and targets: tensors or arrays with as many rows each; either may be an array of several tensors. */
export type FitRows = readonly [
  inputs: TensorData | readonly Tensor[],
  targets: TensorData | readonly Tensor[],
];

/**
 * Rows; examples of `nn.data`; or batches of rows: an iterable (also an asynchronous one) that can be iterated once in each
 * epoch, a stream for one epoch, or a function that gives such for an epoch, by its number.
 */
export type FitData = FitRows | Examples | ItemsOf<FitRows>;

/** How data become batches. */
export interface Batching {
  readonly batchSize: number;
  readonly shuffle: boolean;
  readonly dropLast: boolean;
  readonly seed: number;
}

/** The tensors of a batch, and a description of their shapes where they are known without asking. */
type Batch = readonly [inputs: Handle[], targets: Handle[], shapes?: string];

/** Makes a batch; `own` gets the tensors that are made for it. */
type MakeBatch = (own: Keep) => Batch;

/** Batches that are fed. */
interface Stream {
  /** How many an epoch has; null: it is not known. */
  readonly count: number | null;
  /** What they depend on, which is the same in a run that goes on from a checkpoint. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** The batches of an epoch, from the position `start` on. */
  epoch(number: number, start: number): AsyncIterable<MakeBatch>;
}

/** Data as they are used: tensors of rows, or batches. */
export type Source = { readonly rows: Batch } | { readonly stream: Stream };

/** The data to train on and to measure on, and what Python is told of the latter. Throws ArgumentError. */
export function sourcesOf(
  session: Session,
  data: FitData,
  validation: FitData | number | undefined,
  batching: Batching,
  keep: Keep,
): { data: Source; validation: Source | number | null } {
  const { seed } = batching;
  const measured = { ...batching, shuffle: false, dropLast: false };
  if (typeof validation === "number" && data instanceof Examples) {
    if (!(validation > 0 && validation < 1)) {
      throw new ArgumentError(
        `fit: validation: expected data, or a fraction between 0 and 1, got ${validation}`,
      );
    }
    const part = (isHeldOut: boolean): Part => ({ fraction: validation, isHeldOut });
    return {
      data: { stream: ofExamples(session, data, batching, part(false)) },
      validation: { stream: ofExamples(session, data, { ...measured, seed }, part(true)) },
    };
  }
  return {
    data: sourceOf(session, data, "data", batching, keep),
    validation:
      validation === undefined || typeof validation === "number"
        ? (validation ?? null)
        : sourceOf(session, validation, "validation", measured, keep),
  };
}

function sourceOf(
  session: Session,
  data: Exclude<FitData, number>,
  what: string,
  batching: Batching,
  keep: Keep,
): Source {
  if (data instanceof Examples) return { stream: ofExamples(session, data, batching) };
  if (Array.isArray(data) || !(typeof data === "function" || isItems(data))) {
    return { rows: rowsOf(session, data, `fit: ${what}`, keep) };
  }
  return { stream: ofBatches(session, data as ItemsOf<FitRows>, `fit: ${what}`) };
}

/** Tensors of rows. Throws ArgumentError. */
function rowsOf(session: Session, given: unknown, what: string, own: Keep): Batch {
  if (!Array.isArray(given) || given.length !== 2) {
    throw new ArgumentError(`${what}: expected [inputs, targets]`);
  }
  const tensors = (part: TensorData | readonly Tensor[]): Handle[] => {
    if (Array.isArray(part) && part.every((x) => x instanceof Handle)) return part as Handle[];
    if (part instanceof Handle) return [part];
    return [own(tensorOf(session, part as TensorData))];
  };
  const [inputs, targets] = given as unknown as FitRows;
  return [tensors(inputs), tensors(targets)];
}

function ofExamples(session: Session, examples: Examples, batching: Batching, part?: Part): Stream {
  const { batchSize, shuffle, dropLast } = batching;
  return {
    count: examples.count({ ...batching, part }),
    settings: {
      batch_size: batchSize,
      shuffle,
      drop_last: dropLast,
      ...(part !== undefined && { validation: part.fraction }),
    },
    async *epoch(number, start) {
      for await (const [input, target] of examples.packed({ ...batching, epoch: number, start, part })) {
        const shapes = `${describe(input)} -> ${describe(target)}`;
        yield (own) => [
          [own(tensorOfPacked(session, input))],
          [own(tensorOfPacked(session, target))],
          shapes,
        ];
      }
    },
  };
}

function ofBatches(session: Session, given: ItemsOf<FitRows>, what: string): Stream {
  const source = new ItemSource(given, what);
  return {
    count: null,
    settings: {},
    async *epoch(number, start) {
      let position = 0;
      for await (const batch of await source.open(number)) {
        if (position++ >= start) yield (own) => rowsOf(session, batch, `${what}: batch`, own);
      }
    },
  };
}

/** A batch to feed, or an epoch's end. */
interface Fed {
  readonly kind: Kind;
  readonly make?: MakeBatch;
}

/** All that a run is fed, in order, from a position on. */
async function* sequenceOf(
  streams: Readonly<Partial<Record<Kind, Stream>>>,
  epochs: number,
  epoch: number,
  position: number,
): AsyncGenerator<Fed> {
  for (let start = position; epoch < epochs; epoch++, start = 0) {
    for (const kind of ["step", "evaluation"] as const) {
      const [stream, isStep] = [streams[kind], kind === "step"];
      if (stream === undefined) continue;
      for await (const make of stream.epoch(isStep ? epoch : 0, isStep ? start : 0)) yield { kind, make };
      yield { kind };
    }
  }
}

/** Feeds a run with batches. */
export class Feed {
  readonly #session: Session;
  readonly #training: PythonObject;
  readonly #capture: StepCapture;
  readonly #ahead: Prefetch<Fed>;

  /** `streams`: what is fed. `epoch`, `position`: where the run begins. */
  constructor(
    session: Session,
    training: PythonObject,
    capture: StepCapture,
    streams: Readonly<Partial<Record<Kind, Stream>>>,
    [epochs, epoch, position]: readonly [number, number, number],
  ) {
    this.#session = session;
    this.#training = training;
    this.#capture = capture;
    this.#ahead = new Prefetch(sequenceOf(streams, epochs, epoch, position), DEPTH);
  }

  /**
   * Feed what is there; at least one batch where the run waits for it. Rejects with an error of the data, and with the
   * reason of `signal`.
   */
  async fill(isWaiting: boolean, signal: AbortSignal | undefined): Promise<void> {
    if (isWaiting) {
      const fed = await abortable(this.#ahead.next(), signal);
      if (fed === undefined) throw new PolygradError("internal: fit: the run waits for data after its end");
      await this.#feed(fed);
    }
    for (let fed = this.#ahead.takeReady(); fed !== undefined; fed = this.#ahead.takeReady()) {
      await this.#feed(fed);
    }
  }

  /** Read no more. */
  close(): void {
    this.#ahead.close();
  }

  async #feed({ kind, make }: Fed): Promise<void> {
    const session = this.#session;
    if (make === undefined) {
      session.run("$fit.Training.end_epoch", [this.#training, kind]);
      return;
    }
    const made: Handle[] = [];
    try {
      const [inputs, targets, shapes] = make((handle) => {
        made.push(handle);
        return handle;
      });
      await this.#capture.ofBatch(kind, inputs.length, [...inputs, ...targets] as Tensor[], shapes);
      session.run("$fit.Training.feed", [this.#training, kind, inputs, targets]);
    } finally {
      for (const handle of made) handle.dispose();
    }
  }
}
