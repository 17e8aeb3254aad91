/** The captured functions of a training run: a step and an evaluation for each shape of batches. */

import { callContext, callTensor, unpack } from "./calls";
import { compileStep, jitOf, tinyJit } from "./capture";
import { ArgumentError } from "./generated/errors";
import type { Tensor } from "./generated/tensor";
import type { Handle } from "./handle";
import { knownOf } from "./known";
import { PythonObject } from "./object";
import type { Session } from "./session";

/** A function of a prediction and targets: the mean over rows, a tensor of one element. */
export type Measure = (prediction: never, ...targets: Tensor[]) => Tensor;
export type LossName = "crossEntropy" | "binaryCrossEntropy" | "mse" | "mae" | "huber";
export type MetricName = "accuracy" | "mse" | "mae";

/** A model: an object with a method `forward`, in whose properties its tensors and layers are. */
export interface FitModel {
  forward(...inputs: never[]): unknown;
}

/** Keeps a handle until the run ends. */
export type Keep = <T extends Handle>(handle: T) => T;

/** What a batch is for. */
export type Kind = "step" | "evaluation";

/** Python's names of losses and of metrics. */
const LOSSES: Readonly<Record<LossName, string>> = {
  crossEntropy: "cross_entropy",
  binaryCrossEntropy: "binary_cross_entropy",
  mse: "mse",
  mae: "mae",
  huber: "huber",
};
const METRICS: Readonly<Record<MetricName, string>> = { accuracy: "accuracy", mse: "mse", mae: "mae" };

/** What is measured: the loss, and metrics. */
export interface Measures {
  /** A function of (prediction, ...targets), or the name of one. */
  readonly loss: Measure | LossName;
  /** Functions by name, or names. */
  readonly metrics?: Readonly<Record<string, Measure | MetricName>> | readonly MetricName[];
}

/** The loss and the metrics by name, in order. Throws ArgumentError. */
export function measuresOf(
  session: Session,
  { loss, metrics = [] }: Measures,
): [name: string, measure: Measure][] {
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

/** Captures the functions of a run, of the state that a checkpoint has brought. */
export class StepCapture {
  readonly #session: Session;
  readonly #training: PythonObject;
  readonly #model: FitModel;
  readonly #measures: readonly (readonly [name: string, measure: Measure])[];
  readonly #keep: Keep;
  readonly #optimizer: PythonObject;
  /** What steps and evaluations add to. */
  readonly #sums: Readonly<Record<Kind, Tensor>>;
  readonly #captured = new Set<string>();

  constructor(session: Session, training: PythonObject, model: FitModel, measures: Measures, keep: Keep) {
    this.#session = session;
    this.#training = training;
    this.#model = model;
    this.#measures = measuresOf(session, measures);
    this.#keep = keep;
    this.#optimizer = keep(new PythonObject(session, session.call("$get", [training, "optimizer"])));
    const [step, evaluation] = unpack(session, session.call("$fit.Training.sums", [training]), 2).map(keep);
    this.#sums = { step, evaluation } as Record<Kind, Tensor>;
  }

  /** Capture a function for each size of batches of rows. `inputs`: how many tensors are inputs. */
  async ofRows(kind: Kind, inputs: number): Promise<void> {
    const [session, training] = [this.#session, this.#training];
    const sizes = (await session.value("$fit.Training.sizes", [training, kind])) as number[];
    for (const rows of sizes) {
      const source = session.call("$fit.Training.example", [training, kind, rows]);
      const count = (await session.ask({ kind: "length", handle: source })) as number;
      this.#capture(kind, inputs, rows, unpack(session, source, count).map(this.#keep));
    }
  }

  /** Capture a function for a batch, unless there is one for its shapes: `shapes` describes them, where they are known. */
  async ofBatch(kind: Kind, inputs: number, tensors: readonly Tensor[], shapes?: string): Promise<void> {
    if (shapes !== undefined && this.#captured.has(`${kind}/${shapes}`)) return;
    const described = [];
    for (const tensor of tensors) {
      const { shape, dtype } = knownOf(tensor) ?? {};
      if (shape === undefined || dtype === undefined) await tensor.ready();
      described.push(`${tensor.dtype} ${tensor.shape.join()}`);
    }
    const key = `${kind}/${shapes ?? [inputs, ...described].join("/")}`;
    if (this.#captured.has(key)) return;
    const rows = tensors.map((tensor) => tensor.shape[0]);
    const [first] = rows;
    if (first === undefined || rows.some((n) => n !== first)) {
      const [what, shapes] = [kind === "step" ? "data" : "validation", described.join("; ")];
      throw new ArgumentError(`fit: ${what}: expected batches of tensors with as many rows, got ${shapes}`);
    }
    // An evaluation runs while it is captured.
    const { evaluation } = this.#sums;
    const before = kind === "evaluation" ? evaluation.clone().realize() : undefined;
    this.#capture(kind, inputs, first, tensors);
    this.#captured.add(key);
    if (before === undefined) return;
    evaluation.assign(before).realize();
    before.dispose();
  }

  #capture(kind: Kind, inputs: number, rows: number, tensors: readonly Tensor[]): void {
    const session = this.#session;
    const predict = this.#model.forward.bind(this.#model);
    /** Measure a batch, and add to the sums. */
    const measure = (tensors: readonly Tensor[]): Tensor[] => {
      const prediction = predict(...(tensors.slice(0, inputs) as never[])) as never;
      const targets = tensors.slice(inputs);
      const measured = this.#measures.map(
        ([name, measure]) => [name, measure(prediction, ...targets)] as const,
      );
      session.run("$fit.add", [this.#sums[kind], Object.fromEntries(measured), rows]);
      return measured.map(([, value]) => value);
    };
    let captured: Handle;
    if (kind === "step") {
      const step = (_: unknown, ...xs: Tensor[]): Tensor[] => measure(xs);
      captured = compileStep(session, step, this.#model, this.#optimizer, ...tensors);
    } else {
      const evaluate = tinyJit(session, (...xs: Tensor[]) => measure(xs));
      for (let i = 0; i < 2; i++)
        outsideOfTraining(session, () => {
          session.disposeIn(evaluate(...tensors));
        });
      captured = jitOf(evaluate);
    }
    session.run("$fit.Training.add", [this.#training, kind, this.#keep(captured), tensors]);
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
