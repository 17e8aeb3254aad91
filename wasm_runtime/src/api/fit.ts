/**
 * `fit`: a training run. The functions of loss and metrics are captured here, for each shape of batches; Python runs the
 * loop over them (polygrad/training/binding.py), a slice of time after the other.
 */

import { callContext, callTensor, unpack } from "./calls";
import { compileStep, jitOf, tinyJit } from "./capture";
import { ArgumentError } from "./generated/errors";
import type { Optimizer, OptimizerGroup } from "./generated/nn";
import type { Tensor } from "./generated/tensor";
import { Handle } from "./handle";
import { tensorOf, type TensorData } from "./make";
import { getStateDict } from "./models";
import { PythonObject } from "./object";
import { checkOptions, withOptionNames, type OptionNames } from "./options";
import type { Session } from "./session";
import { readAll, type FileSource, type Host } from "./sources";
import type { OnProgress } from "../progress";

/** A function of a prediction and targets: the mean over rows, a tensor of one element. */
export type Measure = (prediction: never, ...targets: Tensor[]) => Tensor;
export type LossName = "crossEntropy" | "binaryCrossEntropy" | "mse" | "mae" | "huber";
export type MetricName = "accuracy" | "mse" | "mae";

/** Inputs and targets: tensors or arrays with as many rows each; either may be an array of several tensors. */
export type FitData = readonly [
  inputs: TensorData | readonly Tensor[],
  targets: TensorData | readonly Tensor[],
];

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

export interface FitOptions {
  /** A function of (prediction, ...targets), or the name of one. */
  readonly loss: Measure | LossName;
  /** Functions by name, or names. */
  readonly metrics?: Readonly<Record<string, Measure | MetricName>> | readonly MetricName[];
  readonly epochs?: number;
  /** Rows of a batch: 32 unless given. */
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
  /** A checkpoint to go on from, with the results that the run would have had without the interruption. */
  readonly resume?: FileSource;
  /** Is called every few hundredths of a second. */
  readonly onProgress?: OnProgress;
  /** Is called after each epoch, and awaited; `false` ends the run. */
  readonly onEpoch?: (state: FitState) => unknown;
  /** Ends the run after the present step: `fit` rejects with its reason. */
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

/** A model: an object with a method `forward`, in whose properties its tensors and layers are. */
export interface FitModel {
  forward(...inputs: never[]): unknown;
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
  readonly epoch: number;
  readonly step: number;
  readonly steps: number;
  readonly values: Readonly<Record<string, number>>;
  readonly history: Readonly<Record<string, readonly number[]>>;
  readonly reason: string;
}

/** Seconds between two reports. Meanwhile a page of a session on this thread does not respond. */
const SLICE = 0.04;

/** Python's names of losses and of metrics. */
const LOSSES: Readonly<Record<LossName, string>> = {
  crossEntropy: "cross_entropy",
  binaryCrossEntropy: "binary_cross_entropy",
  mse: "mse",
  mae: "mae",
  huber: "huber",
};
const METRICS: Readonly<Record<MetricName, string>> = { accuracy: "accuracy", mse: "mse", mae: "mae" };

/** `Polygrad.fit`. */
export async function fit(
  session: Session,
  host: Host,
  model: FitModel,
  data: FitData,
  options: FitOptions,
): Promise<FitResult> {
  checkArguments(model, options);
  const { resume, signal, onProgress, onEpoch } = options;
  signal?.throwIfAborted();
  const checkpoint = resume === undefined ? null : await readAll(host, resume, "fit: resume", { signal });
  let hasEnded = false;
  const temporary: Handle[] = [];
  const keep = <T extends Handle>(handle: T): T => {
    temporary.push(handle);
    return handle;
  };
  try {
    const training = keep(prepare(session, model, data, options, keep));
    const { scheduler, earlyStopping } = options;
    const started = [training, scheduler ?? null, earlyStopping ?? null];
    const bytes = checkpoint === null ? null : session.bytes(checkpoint);
    let epoch = (await session.value("$fit.Training.start", [...started, bytes])) as number;
    await capture(session, training, model, options, keep); // of the state that a checkpoint has brought
    for (;;) {
      if (signal?.aborted) session.run("$fit.Training.stop", [training, "it was aborted"]);
      const state = await advance(session, training);
      const { step, steps, values } = state;
      onProgress?.({
        stage: "training",
        fraction: steps ? step / steps : 1,
        loaded: step,
        total: steps,
        values,
      });
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
        if (goesOn === false) session.run("$fit.Training.stop", [training, "onEpoch stopped it"]);
      }
      epoch = state.epoch;
      if (state.done) {
        signal?.throwIfAborted();
        const svg = (await session.value("$fit.Training.svg", [training])) as string;
        return { history: state.history, stopReason: state.reason, svg };
      }
      await new Promise((resolve) => setTimeout(resolve, 0)); // a page draws
    }
  } catch (error) {
    throw withOptionNames(error, OPTIONS);
  } finally {
    hasEnded = true;
    for (const handle of temporary) handle.dispose();
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

/** The run, before anything was captured. */
function prepare(
  session: Session,
  model: FitModel,
  data: FitData,
  options: FitOptions,
  keep: <T extends Handle>(handle: T) => T,
): PythonObject {
  const tensors = (part: TensorData | readonly Tensor[]): Handle[] => {
    if (Array.isArray(part) && part.every((x) => x instanceof Handle)) return part as Handle[];
    if (part instanceof Handle) return [part];
    return [keep(tensorOf(session, part as TensorData))];
  };
  const pair = (given: FitData, what: string): [Handle[], Handle[]] => {
    const parts: unknown = given;
    if (!Array.isArray(parts) || parts.length !== 2) {
      throw new ArgumentError(`fit: ${what}: expected [inputs, targets]`);
    }
    return [tensors(given[0]), tensors(given[1])];
  };
  const { validation, epochs = 1, batchSize = 32, shuffle = true, dropLast = false, seed = 0 } = options;
  const settings = {
    epochs,
    batch_size: batchSize,
    interval: options.schedulerInterval ?? "epoch",
    shuffle,
    drop_last: dropLast,
    seed,
  };
  const held = typeof validation === "number" ? validation : validation && pair(validation, "validation");
  const state = getStateDict(model);
  const args = [state, options.optimizer ?? null, measures(session, options).map(([name]) => name)];
  const number = session.call("$fit.Training", [...args, ...pair(data, "data"), held ?? null, settings]);
  return new PythonObject(session, number);
}

/** The loss and the metrics by name, in order. Throws ArgumentError. */
function measures(session: Session, { loss, metrics = [] }: FitOptions): [name: string, measure: Measure][] {
  if (typeof metrics !== "object") {
    throw new ArgumentError("fit: metrics: expected an array of names, or an object of functions");
  }
  const named = Array.isArray(metrics)
    ? (metrics as readonly string[]).map((name) => [name, name] as const)
    : Object.entries(metrics as Readonly<Record<string, Measure | MetricName>>);
  return [
    ["loss", measureOf(session, "loss", loss, LOSSES)],
    ...named.map(([name, metric]): [string, Measure] => [
      name,
      measureOf(session, `metrics: ${name}`, metric, METRICS),
    ]),
  ];
}

/** The function that is given, or that has the given name. */
function measureOf(
  session: Session,
  what: string,
  given: Measure | string,
  names: Readonly<Record<string, string>>,
): Measure {
  if (typeof given === "function") return given;
  const name = Object.hasOwn(names, given) ? names[given] : undefined;
  if (name === undefined) {
    const expected = Object.keys(names).join(", ");
    throw new ArgumentError(`fit: ${what}: expected a function or one of ${expected}, got ${given}`);
  }
  const kind = names === LOSSES ? "loss" : "metrics";
  return (prediction, ...targets) =>
    callTensor(session, "$fit.measure", [kind, name, prediction, ...targets]);
}

/** Capture a step, and an evaluation, for each shape of batches, and hand them to the run. */
async function capture(
  session: Session,
  training: PythonObject,
  model: FitModel,
  options: FitOptions,
  keep: <T extends Handle>(handle: T) => T,
): Promise<void> {
  const predict = model.forward.bind(model);
  const inputs = (await session.value("$get", [training, "inputs"])) as number;
  const optimizer = keep(new PythonObject(session, session.call("$get", [training, "optimizer"])));
  const [trained, evaluated] = unpack(session, session.call("$fit.Training.sums", [training]), 2).map(keep);
  const functions = measures(session, options);
  /** Measure a batch of `rows` rows and add to `sums`. */
  const measure = (sums: Tensor | undefined, rows: number, tensors: readonly Tensor[]): Tensor[] => {
    const prediction = predict(...(tensors.slice(0, inputs) as never[])) as never;
    const targets = tensors.slice(inputs);
    const measured = functions.map(([name, measure]) => [name, measure(prediction, ...targets)] as const);
    session.run("$fit.add", [sums, Object.fromEntries(measured), rows]);
    return measured.map(([, value]) => value);
  };
  for (const kind of ["step", "evaluation"] as const) {
    const sizes = (await session.value("$fit.Training.sizes", [training, kind])) as number[];
    for (const rows of sizes) {
      const source = session.call("$fit.Training.example", [training, kind, rows]);
      const count = (await session.ask({ kind: "length", handle: source })) as number;
      const tensors = unpack(session, source, count).map(keep);
      let captured: Handle;
      if (kind === "step") {
        const step = (_: unknown, ...xs: Tensor[]): Tensor[] => measure(trained, rows, xs);
        captured = compileStep(session, step, model, optimizer, ...tensors);
      } else {
        const evaluate = tinyJit(session, (...xs: Tensor[]) => measure(evaluated, rows, xs));
        for (let i = 0; i < 2; i++)
          outsideOfTraining(session, () => {
            session.disposeIn(evaluate(...tensors));
          });
        captured = jitOf(evaluate);
      }
      session.run("$fit.Training.add", [training, kind, keep(captured), tensors]);
    }
  }
}

function outsideOfTraining(session: Session, run: () => void): void {
  const evaluate = (): void => {
    callContext(session, "Tensor.train", run, [false]);
  };
  const { training } = session;
  session.training = false; // as Python sets it
  try {
    callContext(session, "Tensor.no_grad", evaluate, []);
  } finally {
    session.training = training;
  }
}

async function advance(session: Session, training: PythonObject): Promise<Advance> {
  return (await session.valueWaiting("$fit.Training.advance", [training, SLICE])) as Advance;
}
