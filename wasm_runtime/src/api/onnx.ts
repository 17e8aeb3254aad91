/** `load`: ONNX models as objects with named inputs and outputs. `polygrad/onnx/binding.py` is the other end. */

import { unpack } from "./calls";
import type { NestedData } from "./data";
import {
  dtypeOfArray,
  isTypedArray,
  type DType,
  type DTypeName,
  type Nested,
  type TypedArray,
} from "./dtypes";
import { isOptions } from "./encode";
import { ArgumentError, OnnxError } from "./generated/errors";
import type { Tensor } from "./generated/tensor";
import { Handle } from "./handle";
import { makeTensor } from "./make";
import { namedTensors, PythonObject, type Shape } from "./object";
import type { Session } from "./session";
import { beside, nameOf, readAll, type ByteProgress, type FileSource, type Host } from "./sources";

export interface LoadOptions {
  /** Where weights and computations are; the default device unless given. */
  readonly device?: string;
  /** Whether the floats among the weights are parameters that an optimizer trains. */
  readonly requiresGrad?: boolean;
  /** Files of external data by their names, where they do not lie beside the model's path or address. */
  readonly files?: Readonly<Record<string, FileSource>>;
  /** Is told of the bytes of the model's file as they arrive. */
  readonly onProgress?: ByteProgress;
}

/** An input or output of a model. */
export interface ModelPort {
  readonly name: string;
  /** What it is: nearly always a tensor. */
  readonly kind: "tensor" | "sequence" | "optional" | "sparse_tensor" | "map" | "opaque";
  /** The dtype of the tensor that holds it; null for what no tensor holds. */
  readonly dtype: DType | null;
  /** ONNX's name of the element type, such as "float", "int4" or "string". */
  readonly element: string | null;
  /** A size is a number, the name of a symbolic one, or null; the whole is null where the file does not say it. */
  readonly shape: readonly (number | string | null)[] | null;
  /** What a sequence or an optional holds. */
  readonly inner: ModelPort | null;
}

/** Elements in row-major order, with their shape. */
export interface ShapedData {
  readonly data: TypedArray | ArrayBuffer | DataView;
  readonly shape: readonly number[];
  /** The elements' dtype; that of the array unless given. */
  readonly dtype?: DTypeName;
}

/** Text in nested arrays, or one. */
export type NestedText = string | readonly NestedText[];

/**
 * What an input takes: a tensor; a typed array, in the input's shape, of which one size may be symbolic; elements with a
 * shape; numbers in nested arrays, which become the input's dtype; text; an array of tensors for a sequence; null for an
 * optional without a value.
 */
export type ModelInput =
  Tensor | TypedArray | ShapedData | NestedData | NestedText | readonly Tensor[] | null;

/** What an output may be, beside a tensor: text, a sequence, an optional without a value. */
export type ModelOutput = Tensor | Nested | NestedText | ModelOutput[] | null;

/** The least and the largest of each symbolic size, or the only one. */
export type SizeBounds = Readonly<Record<string, number | readonly [least: number, most: number]>>;

/** A node of a model's graph. */
export interface ModelNode {
  /** Its name in the file, which may be "". */
  readonly name: string;
  /** "Conv", or "com.microsoft.Gelu" with the domain. */
  readonly op: string;
  /** The names of the values that it takes; "" for one that is left out. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  /** Tensors and graphs are described. */
  readonly attributes: Readonly<Record<string, ModelAttribute>>;
}

export type ModelAttribute = number | string | readonly (number | string)[];

/** What is in a file: the nodes of the main graph, in an order in which they run, and weights. */
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
  /** What each output is: "float of shape (1, 10)". */
  readonly outputs: readonly string[];
}

/** How long nodes take one by one, and all together in the kernels that they are fused into. */
export interface NodeTimes {
  readonly nodes: readonly NodeTime[];
  /** How often each was timed. */
  readonly rounds: number;
  readonly fusedSeconds: number;
  readonly fusedLaunches: number;
}

/** A short vector of integers of 64 bits stays on the host: it may be a shape. */
const LONGEST_SHAPE = 64;

function isShaped(x: unknown): x is ShapedData {
  return isOptions(x) && "data" in x && "shape" in x;
}

/** What the models of `load` and of `capture` have in common. */
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
   * The outputs by name, for inputs by name. They are lazy, as all tensors are. Throws, with the name of the file first,
   * ArgumentError, ShapeError, DTypeError for inputs that do not fit, and OnnxError for a node that cannot be computed;
   * in a worker, whoever reads an output is told. OnnxError for an output that is no tensor: `run` returns those too.
   */
  forward(inputs: Readonly<Record<string, ModelInput>>): Record<string, Tensor> {
    const other = this.outputs.find(({ kind, dtype }) => kind !== "tensor" || dtype === null);
    if (other !== undefined) {
      const kind = other.kind === "tensor" ? (other.element ?? "unknown") : other.kind;
      throw new OnnxError(
        `forward: output ${JSON.stringify(other.name)} is no tensor (${kind}): await run()`,
      );
    }
    const made: Handle[] = [];
    const result = this.session.allocate();
    try {
      const text = this.#arguments("forward", inputs, made);
      this.session.transport.send({
        kind: "call_packed",
        name: "$onnx.Model.forward",
        result,
        text,
        buffers: [],
      });
    } finally {
      for (const handle of made) handle.dispose();
    }
    const tensors = unpack(this.session, result, this.outputs.length);
    return Object.fromEntries(tensors.map((tensor, i) => [this.outputs[i]?.name ?? "", tensor]));
  }

  /**
   * `forward` for outputs of any kind, and for models that read numbers of a GPU on the way. Tensors are ready (their
   * `shape` is known), and may be lazy. Rejects as `forward` throws.
   */
  async run(inputs: Readonly<Record<string, ModelInput>>): Promise<Record<string, ModelOutput>> {
    const found: Record<string, ModelOutput> = {};
    const result = await this.callWaiting("forward", inputs);
    for (const [i, handle] of unpack(this.session, result, this.outputs.length).entries()) {
      const port = this.outputs[i];
      if (port !== undefined) found[port.name] = await outputOf(handle, port);
    }
    return found;
  }

  /** Free it; it cannot be used afterwards. What it has returned lives on. */
  close(): void {
    this.dispose();
  }

  /** @internal Call a method of the model with inputs, and with numbers after them, where it may wait for a GPU. */
  protected async callWaiting(
    method: string,
    inputs: Readonly<Record<string, ModelInput>>,
    ...more: number[]
  ): Promise<number> {
    const made: Handle[] = [];
    const result = this.session.allocate();
    try {
      const text = this.#arguments(method, inputs, made, more);
      await this.session.ask({ kind: "call_waiting", name: `$onnx.Model.${method}`, result, text });
    } finally {
      for (const handle of made) handle.dispose();
    }
    return result;
  }

  /** The arguments of a method as JSON for the bridge; `made` gets the tensors that are made for them. */
  #arguments(
    method: string,
    inputs: Readonly<Record<string, ModelInput>>,
    made: Handle[],
    more: readonly number[] = [],
  ): string {
    if (!isOptions(inputs)) throw new ArgumentError(`${method}: expected inputs by name, { name: value }`);
    const encoded = Object.entries(inputs).map(
      ([name, x]) => `["${escaped(name)}",${this.#encode(x, made)}]`,
    );
    const parts = [`{"$":${this.number}}`, `{"d":[${encoded.join(",")}]}`, ...more];
    return `[[${parts.join(",")}],{"d":[]}]`;
  }

  /** An input as JSON for the bridge; a tuple stands for elements in the input's own shape. */
  #encode(x: ModelInput, made: Handle[]): string {
    const { session } = this;
    const keep = (number: number): string => {
      made.push(new Handle(session, number));
      return `{"$":${number}}`;
    };
    if (isTypedArray(x)) {
      const isShort = x.length <= LONGEST_SHAPE && x.BYTES_PER_ELEMENT === 8 && dtypeOfArray(x) === "int64";
      return `{"t":[${isShort ? session.encode([Array.from(x as BigInt64Array)]).text.slice(1, -1) : keep(makeTensor(session, x))}]}`;
    }
    if (isShaped(x)) {
      return keep(makeTensor(session, x.data, { shape: x.shape, ...(x.dtype && { dtype: x.dtype }) }));
    }
    return session.encode([x]).text.slice(1, -1);
  }
}

/** Text inside of JSON's quotation marks. */
const escaped = (text: string): string => JSON.stringify(text).slice(1, -1);

interface Ports {
  readonly inputs: readonly ModelPort[];
  readonly outputs: readonly ModelPort[];
}

/** What an output turned out to be. The handle of what is no tensor is freed. */
async function outputOf(handle: Tensor, port: ModelPort): Promise<ModelOutput> {
  const { session } = handle;
  const { kind, inner } = port;
  if (kind === "tensor" && port.element !== "string") return handle.ready();
  if (
    kind === "optional" &&
    inner !== null &&
    !(await session.ask({ kind: "is_none", handle: handle.number }))
  ) {
    return outputOf(handle, inner);
  }
  try {
    if (kind === "optional") return null;
    if (kind !== "sequence" || inner?.element === "string") {
      return (await session.ask({ kind: "value", handle: handle.number })) as NestedText;
    }
    const count = (await session.ask({ kind: "length", handle: handle.number })) as number;
    return await Promise.all(unpack(session, handle.number, count).map((tensor) => tensor.ready()));
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

/** A model that `load` made. Its parameters are found by `nn.state.getParameters`, by their names in the file. */
export class OnnxModel extends RunnableModel {
  /** How often each op is in the file: "Conv", or "com.microsoft.Gelu" with the domain. */
  readonly ops: Readonly<Record<string, number>>;
  readonly #parameters: readonly string[];

  /** @internal */
  constructor(session: Session, number: number, found: Described) {
    super(session, number, found);
    this.ops = found.ops;
    this.#parameters = found.parameters;
  }

  /** @internal */
  override [namedTensors](): [string, Tensor][] {
    const source = this.session.call("$onnx.Model.tensors", [this]);
    const tensors = unpack(this.session, source, this.#parameters.length);
    return tensors.map((tensor, i) => [this.#parameters[i] ?? "", tensor]);
  }

  /**
   * The model captured once for all sizes within `bounds`: the second call captures, later ones replay one Program,
   * and overwrite what the call before returned. A size without a name is called "x.0", for axis 0 of the input "x".
   * Rejects with ArgumentError for other bounds, and for inputs that are no tensors of a known rank.
   */
  async capture(bounds: SizeBounds = {}): Promise<RunnableModel> {
    const { session, inputs, outputs } = this;
    const captured = session.call("$onnx.Model.capture", [this, bounds]);
    await session.ask({ kind: "meta", handle: captured, names: [] });
    return new RunnableModel(session, captured, { inputs, outputs });
  }

  /** What is in the file. */
  async graph(): Promise<ModelGraph> {
    const question = { kind: "meta", handle: this.number, names: ["graph"] } as const;
    const { graph } = (await this.session.ask(question)) as { graph: ModelGraph };
    return graph;
  }

  /**
   * How long each node takes on these inputs, timed for some `seconds` (0.1 unless given) one by one, and together.
   * Rejects as `forward` throws.
   */
  async profile(inputs: Readonly<Record<string, ModelInput>>, seconds = 0.1): Promise<NodeTimes> {
    const result = new Handle(this.session, await this.callWaiting("profile", inputs, seconds));
    try {
      const found = (await this.session.ask({ kind: "value", handle: result.number })) as PlainTimes;
      const { nodes, rounds, fused_seconds: fusedSeconds, fused_launches: fusedLaunches } = found;
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
    const { session } = this;
    const result = new Handle(session, session.allocate());
    try {
      const text = `[${session.encode([this, bounds]).text},{"d":[]}]`;
      const name = "$onnx.Model.export";
      await session.ask({ kind: "call_waiting", name, result: result.number, text });
      return new Uint8Array((await session.ask({ kind: "read", handle: result.number })) as ArrayBuffer);
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
  { device, requiresGrad, files = {}, onProgress }: LoadOptions = {},
): Promise<OnnxModel> {
  const send = (name: string, text: string, buffers: Uint8Array<ArrayBuffer>[]): number => {
    const result = session.allocate();
    session.transport.send({ kind: "call_packed", name, result, text, buffers });
    return result;
  };
  const bytes = await readAll(host, source, "load", onProgress);
  const text = `[[{"b":0},${JSON.stringify(nameOf(source))}],{"d":[]}]`;
  const file = new Handle(session, send("$onnx.File", text, [bytes]));
  try {
    const { external } = (await session.ask({ kind: "meta", handle: file.number, names: ["external"] })) as {
      external: string[];
    };
    const buffers = await Promise.all(
      external.map((name) => {
        const place = files[name] ?? beside(source, name);
        if (place !== undefined) return readAll(host, place, "load");
        throw new ArgumentError(
          `load: ${nameOf(source)} has elements in the file ${JSON.stringify(name)}: ` +
            "expected it among the option files, as it is not known where the model lies",
        );
      }),
    );
    const pairs = external.map((name, i) => `[${JSON.stringify(name)},{"b":${i}}]`);
    const rest = session.encode([device, requiresGrad ?? false]).text.slice(1, -1);
    const model = send(
      "$onnx.load",
      `[[{"$":${file.number}},${rest},{"d":[${pairs.join(",")}]}],{"d":[]}]`,
      buffers,
    );
    const names = ["inputs", "outputs", "ops", "parameters"];
    const found = (await session.ask({ kind: "meta", handle: model, names })) as Described;
    return new OnnxModel(session, model, found);
  } finally {
    file.dispose();
  }
}
