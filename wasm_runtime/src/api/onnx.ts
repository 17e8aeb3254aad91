/** `load`: ONNX models as objects with named inputs and outputs. `polygrad/onnx/binding.py` is the other end. */

import { DownloadBudget } from "../download_limits";
import type { OpenedFile, ReadOptions } from "../source";
import { unpack } from "./calls";
import { isShaped, type NestedData, type ShapedData } from "./data";
import { isTypedArray, type DType, type Nested, type TypedArray } from "./dtypes";
import { isOptions, Tuple, type Options } from "./encode";
import { endDownload, Feeder } from "./feeder";
import { ArgumentError, OnnxError } from "./generated/errors";
import type { Tensor } from "./generated/tensor";
import { Handle, number, owner } from "./handle";
import { makeTensor, type TensorData, type TensorOptions } from "./make";
import { namedTensors, PythonObject, type Shape } from "./object";
import type { Session } from "./session";
import { beside, nameOf, openSource, type FileSource, type Host } from "./sources";

export interface LoadOptions extends ReadOptions {
  /** The device of weights and computations; by default the default device. */
  readonly device?: string;
  /** Whether the floats among the weights are parameters that an optimizer trains. */
  readonly requiresGrad?: boolean;
  /** Files of external data by their names, where they do not lie beside the model's path or address. */
  readonly files?: Readonly<Record<string, FileSource>>;
}

/** An input or output of a model. */
export interface ModelPort {
  readonly name: string;
  /** The kind of its value, which is nearly always a tensor. */
  readonly kind: "tensor" | "sequence" | "optional" | "sparse_tensor" | "map" | "opaque";
  /** The dtype of its tensor; null for values that no tensor can hold. */
  readonly dtype: DType | null;
  /** ONNX's name of the element type, such as "float", "int4" or "string". */
  readonly element: string | null;
  /** A size is a number, the name of a symbolic size, or null (unknown). The shape is null where the file has none. */
  readonly shape: readonly (number | string | null)[] | null;
  /** The elements of a sequence, or the value of an optional. */
  readonly inner: ModelPort | null;
}

/** Text, or nested arrays of texts. */
export type NestedText = string | readonly NestedText[];

/**
 * A value for an input: a tensor; a typed array in the input's shape, where one size may be symbolic; elements with a
 * shape; nested arrays of numbers, which become the input's dtype; text; an array of tensors for a sequence; null for an
 * optional without a value.
 */
export type ModelInput =
  Tensor | TypedArray | ShapedData | NestedData | NestedText | readonly Tensor[] | null;

/** The value of an output: a tensor, text, a sequence, or null for an optional without a value. */
export type ModelOutput = Tensor | Nested | NestedText | ModelOutput[] | null;

/** The bounds of each symbolic size, or its only value. */
export type SizeBounds = Readonly<Record<string, number | readonly [least: number, most: number]>>;

/** A node of a model's graph. */
export interface ModelNode {
  /** Its name in the file, which may be "". */
  readonly name: string;
  /** "Conv", or "com.microsoft.Gelu" with the domain. */
  readonly op: string;
  /** The names of its inputs; "" for an input that is left out. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** Its attributes; tensors and graphs are described in words. */
  readonly attributes: Readonly<Record<string, ModelAttribute>>;
}

export type ModelAttribute = number | string | readonly (number | string)[];

/** The contents of a file: the nodes of the main graph, in the order in which they run, and weights. */
export interface ModelGraph {
  readonly nodes: readonly ModelNode[];
  readonly initializers: readonly {
    readonly name: string;
    readonly element: string;
    readonly shape: readonly number[];
  }[];
}

/** How long a node takes by itself. */
export interface NodeTime {
  readonly name: string;
  readonly op: string;
  /** The mean time of its launches. */
  readonly seconds: number;
  readonly launches: number;
  /** The outputs in words, such as "float of shape (1, 10)". */
  readonly outputs: readonly string[];
}

/** The times of single nodes, and of all nodes together in fused kernels. */
export interface NodeTimes {
  readonly nodes: readonly NodeTime[];
  /** How often each was timed. */
  readonly rounds: number;
  readonly fusedSeconds: number;
  readonly fusedLaunches: number;
}

/** An int64 vector of at most this length may be a shape, and stays on the host. */
const MAX_SHAPE_LENGTH = 64;

/** The base of the models of `load` and of `capture`. */
export class RunnableModel extends PythonObject {
  /** @internal */
  static override readonly shape: Shape = { id: "Model", tensors: [], values: [] };
  /** What `forward` takes. */
  readonly inputs: readonly ModelPort[];
  /** What `forward` returns. */
  readonly outputs: readonly ModelPort[];

  /** @internal */
  constructor(session: Session, number: number, ports: Ports) {
    super(session, number);
    this.inputs = ports.inputs;
    this.outputs = ports.outputs;
  }

  /**
   * The outputs by name, for inputs by name. They are lazy, as all tensors are. Throws ArgumentError, ShapeError,
   * DTypeError for inputs that do not fit, and OnnxError for a node that cannot be computed; the message begins with the
   * file. A session in a worker throws when an output is read. Throws OnnxError for an output that is no tensor (see
   * `run`).
   */
  forward(inputs: Readonly<Record<string, ModelInput>>): Record<string, Tensor> {
    const other = this.outputs.find(({ kind, dtype }) => kind !== "tensor" || dtype === null);
    if (other !== undefined) {
      const kind = other.kind === "tensor" ? (other.element ?? "unknown") : other.kind;
      throw new OnnxError(
        `forward: output ${JSON.stringify(other.name)} is no tensor (${kind}): await run()`,
      );
    }
    const temporary: Handle[] = [];
    try {
      const args = this.#args("forward", inputs, temporary);
      const result = this[owner].callPacked("$onnx.Model.forward", args);
      const tensors = unpack(this[owner], result, this.outputs.length);
      return Object.fromEntries(tensors.map((tensor, i) => [this.outputs[i]?.name ?? "", tensor]));
    } finally {
      for (const handle of temporary) handle.dispose();
    }
  }

  /**
   * `forward` for outputs of any kind, and for models that read numbers from a GPU on the way. The `shape` of tensors is
   * known, but they may be lazy. Rejects as `forward` throws.
   */
  async run(inputs: Readonly<Record<string, ModelInput>>): Promise<Record<string, ModelOutput>> {
    const results: Record<string, ModelOutput> = {};
    const result = await this.callWaiting("forward", inputs);
    for (const [i, handle] of unpack(this[owner], result, this.outputs.length).entries()) {
      const port = this.outputs[i];
      if (port !== undefined) results[port.name] = await outputOf(handle, port);
    }
    return results;
  }

  /** Free the model; it cannot be used afterwards. Its outputs can. */
  close(): void {
    this.dispose();
  }

  /** @internal Call a method of the model, which may wait for a GPU. Resolves to the number of its result. */
  protected async callWaiting(
    method: string,
    inputs: Readonly<Record<string, ModelInput>>,
    ...more: number[]
  ): Promise<number> {
    const temporary: Handle[] = [];
    try {
      const args = this.#args(method, inputs, temporary);
      return await this[owner].callWaiting(`$onnx.Model.${method}`, [...args, ...more]);
    } finally {
      for (const handle of temporary) handle.dispose();
    }
  }

  /** The model and its inputs as arguments. New tensors are added to `temporary`. */
  #args(
    method: string,
    inputs: Readonly<Record<string, ModelInput>>,
    temporary: Handle[],
  ): readonly unknown[] {
    if (!isOptions(inputs)) throw new ArgumentError(`${method}: expected inputs by name, { name: value }`);
    const entries = Object.entries(inputs).map(([name, x]) => [name, this.#argument(x, temporary)]);
    return [this, Object.fromEntries(entries) as Options];
  }

  /** An input as an argument. A tuple has elements in the input's own shape. New tensors are added to `temporary`. */
  #argument(x: ModelInput, temporary: Handle[]): unknown {
    const { [owner]: session } = this;
    const makeTemporary = (data: TensorData, options?: TensorOptions): Handle => {
      const handle = new Handle(session, makeTensor(session, data, options).number);
      temporary.push(handle);
      return handle;
    };
    if (isTypedArray(x)) {
      const isShort = x.length <= MAX_SHAPE_LENGTH && x instanceof BigInt64Array;
      return new Tuple([isShort ? Array.from(x) : makeTemporary(x)]);
    }
    if (!isShaped(x)) return x;
    return makeTemporary(x.data, { shape: x.shape, ...(x.dtype && { dtype: x.dtype }) });
  }
}

interface Ports {
  readonly inputs: readonly ModelPort[];
  readonly outputs: readonly ModelPort[];
}

/** The value of an output. The handle of a value that is no tensor is freed. */
async function outputOf(handle: Tensor, port: ModelPort): Promise<ModelOutput> {
  const { [owner]: session } = handle;
  const { kind, inner } = port;
  if (kind === "tensor" && port.element !== "string") return handle.ready();
  if (
    kind === "optional" &&
    inner !== null &&
    !(await session.ask({ kind: "is_none", handle: handle[number] }))
  ) {
    return outputOf(handle, inner);
  }
  try {
    if (kind === "optional") return null;
    if (kind !== "sequence" || inner?.element === "string") {
      return (await session.ask({ kind: "value", handle: handle[number] })) as NestedText;
    }
    const count = (await session.ask({ kind: "length", handle: handle[number] })) as number;
    return await Promise.all(unpack(session, handle[number], count).map((tensor) => tensor.ready()));
  } finally {
    handle.dispose();
  }
}

interface PlainTimes {
  readonly nodes: readonly NodeTime[];
  readonly rounds: number;
  readonly fused_seconds: number;
  readonly fused_launches: number;
}

/** A model from `load`. `nn.state` finds its parameters, by their names in the file. */
export class OnnxModel extends RunnableModel {
  /** The number of nodes of each op, such as "Conv", or "com.microsoft.Gelu" with the domain. */
  readonly ops: Readonly<Record<string, number>>;
  readonly #parameters: readonly string[];

  /** @internal */
  constructor(session: Session, number: number, description: Described) {
    super(session, number, description);
    this.ops = description.ops;
    this.#parameters = description.parameters;
  }

  /** @internal */
  override [namedTensors](): [string, Tensor][] {
    const source = this[owner].call("$onnx.Model.tensors", [this]);
    const tensors = unpack(this[owner], source, this.#parameters.length);
    return tensors.map((tensor, i) => [this.#parameters[i] ?? "", tensor]);
  }

  /**
   * The model, captured once for all sizes within `bounds`. The second call captures; later calls replay one Program, and
   * overwrite the outputs of the call before. A size without a name is called "x.0", for axis 0 of the input "x".
   * Rejects with ArgumentError for other bounds, and for inputs that are no tensors of a known rank.
   */
  async capture(bounds: SizeBounds = {}): Promise<RunnableModel> {
    const { [owner]: session, inputs, outputs } = this;
    const captured = session.call("$onnx.Model.capture", [this, bounds]);
    await session.ask({ kind: "meta", handle: captured, names: [] });
    return new RunnableModel(session, captured, { inputs, outputs });
  }

  /** The contents of the file. */
  async graph(): Promise<ModelGraph> {
    const question = { kind: "meta", handle: this[number], names: ["graph"] } as const;
    const { graph } = (await this[owner].ask(question)) as { graph: ModelGraph };
    return graph;
  }

  /**
   * The time of each node on these inputs, and of all together. Measuring takes about `seconds` (by default 0.1).
   * Rejects as `forward` throws.
   */
  async profile(inputs: Readonly<Record<string, ModelInput>>, seconds = 0.1): Promise<NodeTimes> {
    const result = new Handle(this[owner], await this.callWaiting("profile", inputs, seconds));
    try {
      const times = (await this[owner].ask({ kind: "value", handle: result[number] })) as PlainTimes;
      const { nodes, rounds, fused_seconds: fusedSeconds, fused_launches: fusedLaunches } = times;
      return { nodes, rounds, fusedSeconds, fusedLaunches };
    } finally {
      result.dispose();
    }
  }

  /**
   * The bytes of a .pgrd file, which `load` of polygrad/runtime runs without Python. `bounds` are those of `capture`.
   * Rejects as it does; with CaptureError where computed numbers decide what is computed next.
   */
  async export(bounds: SizeBounds = {}): Promise<Uint8Array<ArrayBuffer>> {
    const { [owner]: session } = this;
    const result = new Handle(session, await session.callWaiting("$onnx.Model.export", [this, bounds]));
    try {
      return new Uint8Array((await session.ask({ kind: "read", handle: result[number] })) as ArrayBuffer);
    } finally {
      result.dispose();
    }
  }
}

interface Described extends Ports {
  readonly ops: Readonly<Record<string, number>>;
  readonly parameters: readonly string[];
}

/** The model in an ONNX file; see `Polygrad.load`. */
export async function loadModel(
  session: Session,
  host: Host,
  source: FileSource,
  options: LoadOptions = {},
): Promise<OnnxModel> {
  const budget = new DownloadBudget("load", options);
  const opened = await openSource(host, source, "load", { ...options, budget });
  try {
    return await receive(session, host, source, opened, budget, options);
  } finally {
    void endDownload(opened);
  }
}

/** The model in a file that was opened, and in files of external data. */
async function receive(
  session: Session,
  host: Host,
  source: FileSource,
  opened: OpenedFile,
  budget: DownloadBudget,
  { device, requiresGrad, files = {}, ...reading }: LoadOptions,
): Promise<OnnxModel> {
  const args = [nameOf(source), device, requiresGrad ?? false];
  const loading = new Handle(session, session.callPacked("$onnx.Loading", args));
  const feeder = new Feeder(session, "onnx", loading, reading);
  feeder.total = opened.length;
  try {
    await feeder.send(0, opened);
    const external = (await session.value("$onnx.Loading.external", [loading])) as string[];
    const { signal, cache } = reading;
    if (external.length > 0) feeder.total = undefined;
    for (const [i, name] of external.entries()) {
      const place = files[name] ?? beside(source, name);
      if (place === undefined) {
        throw new ArgumentError(
          `load: ${nameOf(source)} has elements in the file ${JSON.stringify(name)}: ` +
            "expected it among the option files, as it is not known where the model lies",
        );
      }
      const other = await openSource(host, place, "load", { signal, cache, budget });
      try {
        await feeder.send(i + 1, other);
      } finally {
        void endDownload(other);
      }
    }
    const model = await feeder.finish();
    const names = ["inputs", "outputs", "ops", "parameters"];
    const description = (await session.ask({ kind: "meta", handle: model, names })) as Described;
    return new OnnxModel(session, model, description);
  } finally {
    loading.dispose();
  }
}
