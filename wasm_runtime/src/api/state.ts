/** `nn.state`: the tensors of models, and files of tensors. */

import { PieceReader } from "../pieces";
import { DownloadBudget } from "../download_limits";
import { measured, type ReadOptions } from "../source";
import { callStateDict, unpack, wrap } from "./calls";
import { toDType, type DTypeName } from "./dtypes";
import { ArgumentError } from "./generated/errors";
import type { Tensor } from "./generated/tensor";
import { Handle } from "./handle";
import { forgetKnown } from "./known";
import {
  getParameters,
  getStateDict,
  loadStateDict,
  type LoadStateDictOptions,
  type StateDict,
} from "./models";
import { parseIndex, readTensors } from "./safetensors";
import type { Session } from "./session";
import { beside, nameOf, openSource, readAll, type FileSource, type Host } from "./sources";
import type { Template } from "./trees";

/** How a file of tensors is read. */
export interface FileLoadOptions extends ReadOptions {
  /** The device of the tensors; by default the default device. */
  readonly device?: string;
}

/** What is in a GGUF file. */
export interface GgufFile {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly tensors: StateDict;
}

/** The state of models and files. */
export interface State {
  /** Every tensor in `model`, in order: see `getStateDict`. */
  getParameters(model: unknown): Tensor[];
  /**
   * Every tensor in `model` by its dotted name, in order. `model`: a layer, an optimizer, an array, a Map, a Set, a
   * plain object, or an object of your own class. Its properties are looked into, and its getters, unless they compute
   * something new each time. Private fields (`#weight`) cannot be seen: give the class a getter for them.
   *
   * Each object is looked into once. In a worker the `ready()` of optimizers and of layers that hold layers has to be
   * awaited first. Throws ArgumentError for an object of a class in which there is no tensor.
   */
  getStateDict(model: unknown, prefix?: string): StateDict;
  /**
   * Give the tensors of `model` the values of `state`, by name. They are converted to the model's dtype and device.
   * Rejects with ArgumentError for missing or unknown names, ShapeError for another shape.
   */
  loadStateDict(model: unknown, state: StateDict, options?: LoadStateDictOptions): Promise<void>;
  /**
   * The tensors of a safetensors file by name, read as they arrive.
   *
   * The address of an index, `model.safetensors.index.json`, stands for all the files that it lists, which lie beside it.
   * Files that a user chose are given as an array. Rejects with ArgumentError when damaged, FetchError.
   */
  safeLoad(source: FileSource | readonly FileSource[], options?: FileLoadOptions): Promise<StateDict>;
  /**
   * What is in a file of `torch.save` (`.pt`, `.bin`), with tensors in the place of torch's: usually tensors by name.
   *
   * A pickle is a program: only what makes tensors, text, numbers and containers of them is executed. Tensors that shared
   * memory share it, as views. Integers beyond 2 ** 53 are bigints. Rejects with ArgumentError for damaged or hostile
   * files, FetchError.
   */
  torchLoad(source: FileSource, options?: FileLoadOptions): Promise<StateDict>;
  torchLoad<T>(source: FileSource, options?: FileLoadOptions): Promise<T>;
  /**
   * The metadata and the tensors of a GGUF file. Quantized tensors become float32 on the device, lazily. Rejects with
   * ArgumentError when the file is damaged or has an unknown quantization, FetchError.
   */
  ggufLoad(source: FileSource, options?: FileLoadOptions): Promise<GgufFile>;
  /** The files in a tar file by name, as uint8 tensors. Rejects with ArgumentError when damaged, FetchError. */
  tarExtract(source: FileSource, options?: ReadOptions): Promise<StateDict>;
  /** The files in a zip file by name, as uint8 tensors. Rejects with ArgumentError when damaged, FetchError. */
  zipExtract(source: FileSource, options?: ReadOptions): Promise<StateDict>;
  /**
   * Move all tensors of `model` to a device, and convert those of floats to a dtype of floats; the model. They stay the
   * same objects, so an optimizer that has them keeps working. Throws ArgumentError, DeviceError.
   */
  modelTo<M>(model: M, options: { readonly device?: string; readonly dtype?: DTypeName }): M;
  /** Tensors as the bytes of a safetensors file. */
  safeSave(tensors: StateDict, metadata?: Readonly<Record<string, string>>): Promise<Uint8Array<ArrayBuffer>>;
}

/** A part of what a file holds, as polygrad/nn/binding.py describes it. */
type Part =
  | Exclude<Template, { parts: unknown }>
  | { readonly parts: readonly (readonly [string, Part])[]; readonly array: boolean }
  | { readonly number: string }
  | { readonly integer: string };

/** `nn.state` of a session. */
export function stateOf(session: Session, host: Host): State {
  /** The bytes of a file, as an argument. */
  const read = async (source: FileSource, what: string, reading: ReadOptions): Promise<unknown> =>
    session.bytes(await readAll(host, source, what, reading));
  const described = async (
    name: string,
    what: string,
    source: FileSource,
    { device, ...reading }: FileLoadOptions = {},
  ): Promise<unknown> => {
    const bytes = await read(source, what, reading);
    return valueOf(session, session.callPacked(name, [bytes, device ?? null]));
  };
  const extract = async (
    name: string,
    what: string,
    source: FileSource,
    reading: ReadOptions = {},
  ): Promise<StateDict> => {
    const number = session.callPacked(name, [await read(source, what, reading)]);
    return callStateDict(session, "$same", [new Handle(session, number)]);
  };
  return {
    getParameters,
    getStateDict,
    loadStateDict: (model, state, options) => loadStateDict(session, model, state, options),
    safeLoad: (source, options = {}) => safeLoad(session, host, source, options),
    async safeSave(tensors, metadata) {
      const options = metadata === undefined ? {} : { metadata };
      const result = session.call("nn.state.safe_save", [tensors], options);
      const bytes = await session.ask({ kind: "read", handle: result });
      session.transport.send({ kind: "release", handles: [result] });
      return new Uint8Array(bytes as ArrayBuffer);
    },
    torchLoad: <T>(source: FileSource, options?: FileLoadOptions) =>
      described("$nn.load_torch", "torchLoad", source, options) as Promise<T>,
    ggufLoad: (source, options) =>
      described("$nn.load_gguf", "ggufLoad", source, options) as Promise<GgufFile>,
    tarExtract: (source, options) => extract("nn.state.tar_extract", "tarExtract", source, options),
    zipExtract: (source, options) => extract("nn.state.zip_extract", "zipExtract", source, options),
    modelTo(model, { device, dtype }) {
      const tensors = getStateDict(model);
      session.run("$nn.move", [tensors, device, dtype === undefined ? undefined : toDType(dtype)]);
      for (const tensor of Object.values(tensors)) forgetKnown(tensor);
      return model;
    },
  };
}

/** The value that `source` describes: its structure, and its tensors. */
async function valueOf(session: Session, source: number): Promise<unknown> {
  const first = session.allocate(2);
  session.transport.send({ kind: "unpack", source, first, count: 2 });
  const part = (await session.take(first)) as Part;
  const count = (await session.ask({ kind: "length", handle: first + 1 })) as number;
  const tensors = unpack(session, first + 1, count);
  const build = (x: Part): unknown => {
    if ("tensor" in x) return tensors[x.tensor];
    if ("number" in x) return Number(x.number);
    if ("integer" in x) return BigInt(x.integer);
    if ("value" in x) return x.value;
    const parts = x.parts.map(([key, value]) => [key, build(value)] as const);
    return x.array ? parts.map(([, value]) => value) : Object.fromEntries(parts);
  };
  return build(part);
}

// --- safetensors

/** Options of files that share their limits. */
type LimitedOptions = FileLoadOptions & { readonly budget: DownloadBudget };

async function safeLoad(
  session: Session,
  host: Host,
  source: FileSource | readonly FileSource[],
  options: FileLoadOptions,
): Promise<StateDict> {
  const sources = Array.isArray(source) ? (source as readonly FileSource[]) : [source as FileSource];
  if (options.sha256 !== undefined && sources.length !== 1) {
    throw new ArgumentError(`safeLoad: sha256: expected one file, got ${sources.length}`);
  }
  const tensors: StateDict = {};
  const limited = { ...options, budget: new DownloadBudget("safeLoad", options) };
  for (const file of sources) {
    const found = isIndex(file)
      ? await loadShards(session, host, file, limited)
      : await loadFile(session, host, file, limited);
    const [twice] = Object.keys(found).filter((name) => Object.hasOwn(tensors, name));
    if (twice !== undefined) {
      throw new ArgumentError(`safeLoad: expected names of their own in each file, got ${twice} twice`);
    }
    Object.assign(tensors, found);
  }
  return tensors;
}

async function loadFile(
  session: Session,
  host: Host,
  source: FileSource,
  { device, ...reading }: LimitedOptions,
): Promise<StateDict> {
  const opened = await openSource(host, source, "safeLoad", reading);
  const reader = new PieceReader(measured(opened, reading));
  const tensors: StateDict = {};
  try {
    for await (const [{ name, dtype, shape }, bytes] of readTensors(reader)) {
      const options = device === undefined ? {} : { device };
      const number = session.make(bytes, dtype, shape, options);
      tensors[name] = wrap(session, number, session.transport.synchronous ? undefined : { shape, dtype });
    }
    while ((await reader.take(1 << 16)).length > 0); // progress is that of the whole file
  } finally {
    await reader.close();
  }
  return tensors;
}

function isIndex(source: FileSource): boolean {
  return nameOf(source)
    .replace(/[?#].*$/, "")
    .endsWith(".index.json");
}

/** The tensors of the files that an index lists, in its order. */
async function loadShards(
  session: Session,
  host: Host,
  source: FileSource,
  options: LimitedOptions,
): Promise<StateDict> {
  const { onProgress, sha256, ...reading } = options;
  const files = parseIndex(await readAll(host, source, "safeLoad", { ...reading, sha256 }), "safeLoad");
  const tensors: StateDict = {};
  for (const file of new Set(Object.values(files))) {
    const shard = beside(source, file);
    if (shard === undefined) {
      throw new ArgumentError(
        `safeLoad: expected an address or a path of an index, beside which ${file} lies, got one without a folder: ` +
          "give the files themselves, in an array",
      );
    }
    const found = await loadFile(session, host, shard, { ...reading, onProgress });
    const missing = Object.keys(files).find((name) => files[name] === file && !Object.hasOwn(found, name));
    if (missing !== undefined) {
      throw new ArgumentError(`safeLoad: expected ${missing} in ${file}, got a file without it`);
    }
    Object.assign(tensors, found);
  }
  return Object.fromEntries(Object.keys(files).map((name) => [name, tensors[name] as Tensor]));
}
