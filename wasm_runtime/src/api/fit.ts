/**
 * `fit`: a training run. The functions of loss and metrics are captured here, for each shape of batches (`fit_steps.ts`);
 * Python runs the loop over them (polygrad/training/binding.py), a slice of time after the other. Data that are not rows in
 * memory are fed (`fit_batches.ts`), and checkpoints are written here (`fit_checkpoints.ts`).
 */

import { Feed, sourcesOf, type Batching, type FitData, type Source } from "./fit_batches";
import { CheckpointFolder, type CheckpointOptions } from "./fit_checkpoints";
import { measuresOf, StepCapture, type FitModel, type Keep, type Kind, type Measures } from "./fit_steps";
import { ArgumentError } from "./generated/errors";
import type { Optimizer, OptimizerGroup } from "./generated/nn";
import type { Handle } from "./handle";
import { getStateDict } from "./models";
import { PythonObject } from "./object";
import { checkOptions, withOptionNames, type OptionNames } from "./options";
import type { Session } from "./session";
import { readAll, type FileSource, type Host } from "./sources";
import type { OnProgress } from "../progress";

/** Where a run stands after an epoch. */
export interface FitState {
  /** How many epochs are complete. */
  readonly epoch: number;
  /** How many steps were taken. */
  readonly step: number;
  /** A value of each name for each epoch. */
  readonly history: Readonly<Record<string, readonly number[]>>;
  /** The state of the run as a safetensors file, from which `fit` goes on: `resume`. */
  checkpoint(): Promise<Uint8Array<ArrayBuffer>>;
}

/** When a run stops early. */
export interface EarlyStopping {
  /** A name in the history: "val_loss" unless given, or "loss" without validation. */
  readonly monitor?: string;
  /** For how many epochs the value may not improve: 3 unless given. */
  readonly patience?: number;
  /** Whether larger values are better. */
  readonly largest?: boolean;
  /** By how much a value must be better. */
  readonly least?: number;
  /** Whether the model gets the weights of the best epoch; true unless given. */
  readonly restore?: boolean;
}

export interface FitOptions extends Measures {
  readonly epochs?: number;
  /** Rows of a batch: 32 unless given. Data that are batches already stay as they are. */
  readonly batchSize?: number;
  /** By default Adam, with a learning rate of 0.001. */
  readonly optimizer?: Optimizer | OptimizerGroup;
  /** Data to measure on after each epoch, as `val_loss` and so on; or the fraction of the rows that is held out. */
  readonly validation?: FitData | number;
  /** Of learning rates: an object of `nn.optim`, such as `new nn.optim.CosineAnnealingLR(optimizer, 10)`. */
  readonly scheduler?: PythonObject;
  /** When the scheduler steps: after each epoch unless given. */
  readonly schedulerInterval?: "epoch" | "step";
  /** Stop when `monitor` ("val_loss", or "loss") has not improved for `patience` epochs, and restore the best weights. */
  readonly earlyStopping?: EarlyStopping;
  /** Whether rows are in another order in each epoch; true unless given. */
  readonly shuffle?: boolean;
  /** Whether a smaller batch at the end of an epoch is left out. */
  readonly dropLast?: boolean;
  /** Of the order, and of what is random in the model. */
  readonly seed?: number;
  /** Writes the state of the run into a folder, from which a run with `resume` goes on. */
  readonly checkpoints?: CheckpointOptions;
  /**
   * A checkpoint to go on from, with the results that the run would have had without the interruption; true: the newest in
   * the folder of `checkpoints`, or the beginning where there is none.
   */
  readonly resume?: FileSource | boolean;
  /** Is called every few hundredths of a second. */
  readonly onProgress?: OnProgress;
  /** Is called after each epoch, and awaited; `false` ends the run. */
  readonly onEpoch?: (state: FitState) => unknown;
  /**
   * Ends the run, with a last checkpoint: `fit` rejects with its reason. A long step in a worker that shares memory with this
   * thread is stopped, and then it has done nothing; any other is the last.
   */
  readonly signal?: AbortSignal;
}

/** What `fit` resolves to. */
export interface FitResult {
  /** A value of each name for each epoch. */
  readonly history: Readonly<Record<string, readonly number[]>>;
  /** Why the run stopped early; "" if it did not. */
  readonly stopReason: string;
  /** The history as curves: SVG text. */
  readonly svg: string;
}

/** The names of all options. */
const OPTIONS: OptionNames<FitOptions> = {
  loss: true,
  metrics: true,
  epochs: true,
  batchSize: true,
  optimizer: true,
  validation: true,
  scheduler: true,
  schedulerInterval: true,
  earlyStopping: true,
  shuffle: true,
  dropLast: true,
  seed: true,
  checkpoints: true,
  resume: true,
  onProgress: true,
  onEpoch: true,
  signal: true,
};

const EARLY_STOPPING: OptionNames<EarlyStopping> = {
  monitor: true,
  patience: true,
  largest: true,
  least: true,
  restore: true,
};

interface Advance {
  readonly done: boolean;
  /** Whether it waits for a batch. */
  readonly waiting: boolean;
  readonly epoch: number;
  readonly step: number;
  /** Of all epochs; null: it is not known. */
  readonly steps: number | null;
  /** Null: they were not read. */
  readonly values: Readonly<Record<string, number>> | null;
  readonly history: Readonly<Record<string, readonly number[]>>;
  readonly reason: string;
  /** The name of a checkpoint that is to be written. */
  readonly checkpoint: string | null;
}

/** Seconds between two reports. Meanwhile a page of a session on this thread does not respond. */
const SLICE = 0.04;

/** `Polygrad.fit`. */
export async function fit(
  session: Session,
  host: Host,
  model: FitModel,
  data: FitData,
  options: FitOptions,
): Promise<FitResult> {
  checkArguments(model, options);
  const { signal, onProgress, onEpoch, epochs = 1 } = options;
  signal?.throwIfAborted();
  const folder = options.checkpoints && new CheckpointFolder(host, options.checkpoints);
  const checkpoint = await startOf(host, folder, options);
  let hasEnded = false;
  const temporary: Handle[] = [];
  const keep = <T extends Handle>(handle: T): T => {
    temporary.push(handle);
    return handle;
  };
  let feed: Feed | undefined;
  try {
    const { training, sources } = prepare(session, model, data, options, keep);
    const { scheduler, earlyStopping } = options;
    const started = [training, scheduler ?? null, earlyStopping ?? null, folder?.options ?? null];
    const bytes = checkpoint === undefined ? null : session.bytes(checkpoint);
    const at = await session.value("$fit.Training.start", [...started, bytes]);
    const [first, position, firstStep] = at as [number, number, number];
    await folder?.begin(firstStep);
    const capture = new StepCapture(session, training, model, options, keep);
    feed = await open(session, training, capture, sources, [epochs, first, position]);
    let [epoch, isWaiting, hasStopped] = [first, false, false];
    let [rested, reported] = [performance.now(), 0];
    const stop = (reason: string): void => {
      session.run("$fit.Training.stop", [training, reason]);
      hasStopped = true;
    };
    for (;;) {
      if (signal?.aborted) stop("it was aborted");
      if (!hasStopped && (await isAborted(feed?.fill(isWaiting, signal), signal))) continue;
      const isDue = performance.now() - reported >= 1000 * SLICE;
      const given = [training, SLICE, isDue];
      const state = (await session.valueWaiting(
        "$fit.Training.advance",
        given,
        hasStopped ? undefined : signal,
      )) as Advance;
      isWaiting = state.waiting;
      const { step, steps, values } = state;
      if (values !== null && (state.done || step !== steps)) {
        reported = performance.now();
        const fraction = state.done ? 1 : steps === null ? state.epoch / epochs : step / steps;
        onProgress?.({ stage: "training", fraction, loaded: step, total: steps ?? undefined, values });
      }
      if (state.checkpoint !== null) {
        await folder?.write(
          state.checkpoint,
          await session.fileOf("$fit.Training.take_checkpoint", [training]),
        );
      }
      if (state.epoch > epoch && onEpoch !== undefined) {
        const goesOn = await onEpoch({
          epoch: state.epoch,
          step,
          history: state.history,
          checkpoint: async () => {
            if (!hasEnded) return session.fileOf("$fit.Training.checkpoint", [training]);
            throw new ArgumentError("checkpoint: expected a run that goes on, got one that has ended");
          },
        });
        if (goesOn === false) stop("onEpoch stopped it");
      }
      epoch = state.epoch;
      if (state.done) {
        signal?.throwIfAborted();
        const svg = (await session.value("$fit.Training.svg", [training])) as string;
        return { history: state.history, stopReason: state.reason, svg };
      }
      if (performance.now() - rested < 1000 * SLICE) continue;
      await new Promise((resolve) => setTimeout(resolve, 0)); // a page draws
      rested = performance.now();
    }
  } catch (error) {
    throw withOptionNames(error, OPTIONS);
  } finally {
    hasEnded = true;
    feed?.close();
    for (const handle of temporary) handle.dispose();
  }
}

/** The checkpoint to go on from; undefined: from the beginning. */
async function startOf(
  host: Host,
  folder: CheckpointFolder | undefined,
  { resume = false, signal }: FitOptions,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  if (resume === false) return undefined;
  if (resume !== true) return readAll(host, resume, "fit: resume", { signal });
  if (folder !== undefined) return folder.newest();
  throw new ArgumentError(
    "fit: resume: expected the option checkpoints with a folder, or a file to go on from",
  );
}

/** Waits for `work`; whether `signal` has ended it. Rejects with what else it rejects with. */
async function isAborted(work: Promise<void> | undefined, signal: AbortSignal | undefined): Promise<boolean> {
  try {
    await work;
    return false;
  } catch (error) {
    if (signal?.aborted) return true;
    throw error;
  }
}

/** Throws ArgumentError for what TypeScript refuses and JavaScript lets through. */
function checkArguments(model: unknown, options: unknown): void {
  const forward = typeof model === "object" && model !== null && (model as Partial<FitModel>).forward;
  if (typeof forward !== "function") {
    throw new ArgumentError(
      "fit: model: expected an object with a method forward, and with its layers as properties, got " +
        (model === null ? "null" : typeof model === "object" ? "one without it" : `a ${typeof model}`),
    );
  }
  if (typeof options !== "object" || options === null) {
    throw new ArgumentError("fit: expected options with a loss, got none");
  }
  checkOptions<FitOptions>("fit", options, OPTIONS);
  const { earlyStopping } = options as Partial<FitOptions>;
  if (earlyStopping !== undefined) {
    checkOptions<EarlyStopping>("fit: earlyStopping", earlyStopping, EARLY_STOPPING);
  }
}

/** The run, before anything was captured, and its data. */
function prepare(
  session: Session,
  model: FitModel,
  data: FitData,
  options: FitOptions,
  keep: Keep,
): { training: PythonObject; sources: Partial<Record<Kind, Source>> } {
  const { epochs = 1, batchSize = 32, shuffle = true, dropLast = false, seed = 0 } = options;
  const batching: Batching = { batchSize, shuffle, dropLast, seed };
  const { data: trained, validation } = sourcesOf(session, data, options.validation, batching, keep);
  const settings = {
    epochs,
    batch_size: batchSize,
    interval: options.schedulerInterval ?? "epoch",
    shuffle,
    drop_last: dropLast,
    seed,
  };
  const names = measuresOf(session, options).map(([name]) => name);
  const args = [getStateDict(model), options.optimizer ?? null, names];
  const measured = typeof validation === "number" || validation === null ? validation : told(validation);
  const number = session.call("$fit.Training", [...args, told(trained), measured, settings]);
  const training = keep(new PythonObject(session, number));
  // A fraction of rows is of the same kind as they are.
  const sources = { step: trained, ...(validation !== null && { evaluation: trained }) };
  if (typeof validation === "object" && validation !== null) sources.evaluation = validation;
  return { training, sources };
}

/** What Python is told of data. */
function told(source: Source): unknown {
  if ("rows" in source) return source.rows;
  const { count, settings } = source.stream;
  return { count, settings };
}

/** Capture what is known before the run, and begin to read what is fed. */
async function open(
  session: Session,
  training: PythonObject,
  capture: StepCapture,
  sources: Partial<Record<Kind, Source>>,
  at: readonly [epochs: number, epoch: number, position: number],
): Promise<Feed | undefined> {
  const streams: ConstructorParameters<typeof Feed>[3] = {};
  for (const [kind, source] of Object.entries(sources) as [Kind, Source][]) {
    if ("rows" in source) await capture.ofRows(kind, source.rows[0].length);
    else Object.assign(streams, { [kind]: source.stream });
  }
  return Object.keys(streams).length === 0 ? undefined : new Feed(session, training, capture, streams, at);
}
