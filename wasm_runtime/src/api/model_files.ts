/**
 * The files of a model: in a folder at an address (in Node also at a path), as Files, or as bytes. They are opened by
 * name; weights are passed on in blocks while they arrive, so that no file is ever in memory as a whole.
 */

import type { OpenOptions } from "../cache/file_cache";
import { DownloadBudget, type DownloadLimits } from "../download_limits";
import { collect, type OpenedFile, type ReadOptions } from "../source";
import { Bytes, isOptions } from "./encode";
import { endDownload, Feeder } from "./feeder";
import { ArgumentError, FetchError } from "./generated/errors";
import { Handle } from "./handle";
import { parseIndex } from "./safetensors";
import type { Session } from "./session";
import { openSource, type FileSource, type Host } from "./sources";

/**
 * Where a model is: the address of a folder, or of a .gguf, .safetensors or .onnx file in one, and in Node a path; files
 * by their names in the folder; Files (as a page's file input has them); or the File or bytes of a GGUF file.
 */
export type ModelSource =
  string | URL | Blob | ArrayBuffer | Uint8Array | readonly File[] | Readonly<Record<string, FileSource>>;

/** How each file of a model is opened. */
type FileOptions = Pick<OpenOptions, "cache" | "signal" | "budget">;

/** The files of a model. */
interface ModelFiles {
  /** The name of the weights, where it is known. */
  readonly weights?: string | undefined;
  /** Open a file; undefined where there is none of that name. */
  open(name: string, options: FileOptions): Promise<OpenedFile | undefined>;
}

const FILE_OF_WEIGHTS = /\.(gguf|safetensors|onnx)$/i;
const ADDRESS = /^[a-z]+:\/\//i;
/** A part of a model in several GGUF files. */
const PART = /^(.*)-\d{5}-of-(\d{5})\.gguf$/;
const INDEX = "model.safetensors.index.json";
/** The files of weights that are looked for in a folder, in this order. */
const WEIGHTS = ["model.safetensors", INDEX, "model.onnx", "onnx/model.onnx"];

const WHAT = "pipeline";

/** Whether an error says that there is no such file. */
function saysMissing(error: unknown): boolean {
  if (error instanceof FetchError) return error.status === 404 || error.status === 410;
  const code = error instanceof ArgumentError && (error.cause as { code?: unknown } | undefined)?.code;
  return code === "ENOENT" || code === "ENOTDIR";
}

/** Open a file that may not be there. */
async function openOptional(
  host: Host,
  place: FileSource,
  options: FileOptions,
): Promise<OpenedFile | undefined> {
  let file: OpenedFile;
  try {
    file = await openSource(host, place, WHAT, options);
  } catch (error) {
    if (saysMissing(error)) return undefined;
    throw error;
  }
  if (!file.type?.startsWith("text/html")) return file;
  // Servers of applications answer with their page where a file is missing.
  await collect(file, { signal: options.signal });
  return undefined;
}

/** The folder at an address or a path, or the folder of a file of weights that is there. */
function atAddress(host: Host, address: string | URL): ModelFiles {
  const [path = "", query = ""] = splitQuery(String(address));
  const [, start = "", file = ""] = FILE_OF_WEIGHTS.test(path) ? (/^(.*?)([^/\\]*)$/.exec(path) ?? []) : [];
  // Exporters put ONNX files into a folder of that name, beside the configuration.
  const [, parent, inner = ""] = /^(.*[/\\])(onnx[/\\])$/.exec(start) ?? [];
  const isFile = file !== "";
  const folder = isFile ? (parent ?? (start === "" ? "./" : start)) : path.replace(/[/\\]?$/, "/");
  return {
    weights: isFile ? (parent === undefined ? file : `${inner.slice(0, -1)}/${file}`) : undefined,
    open: (name, options) => {
      const place = folder + name + query;
      return openOptional(host, ADDRESS.test(place) ? new URL(place) : place, options);
    },
  };
}

/** An address, and its query, which may authorise a download. */
function splitQuery(address: string): string[] {
  const at = ADDRESS.test(address) ? address.indexOf("?") : -1;
  return at < 0 ? [address] : [address.slice(0, at), address.slice(at)];
}

/** Files by name. */
function byName(host: Host, files: Readonly<Record<string, FileSource>>): ModelFiles {
  const names = Object.keys(files).filter((name) => FILE_OF_WEIGHTS.test(name));
  const known = names.some((name) => WEIGHTS.includes(name));
  return {
    weights: known || Object.hasOwn(files, INDEX) ? undefined : names.sort()[0],
    async open(name, options) {
      const source = Object.hasOwn(files, name) ? files[name] : undefined;
      return source === undefined ? undefined : openOptional(host, source, options);
    },
  };
}

/** The name of a File in the folder that it was chosen with. */
function nameInFolder(file: File): string {
  const path = (file as { webkitRelativePath?: string }).webkitRelativePath ?? "";
  return path === "" ? file.name : path.replace(/^[^/]*\//, "");
}

/** A name for bytes that have none, by how they begin. */
async function nameOfBytes(source: Blob | ArrayBuffer | Uint8Array): Promise<string> {
  if ("name" in source && typeof source.name === "string") return source.name;
  const first = source instanceof Uint8Array ? source.subarray(0, 4) : source.slice(0, 4);
  const bytes = first instanceof Blob ? await first.arrayBuffer() : first;
  const start = new TextDecoder("latin1").decode(bytes);
  return start === "GGUF" ? "model.gguf" : "model.onnx";
}

/** The files of a source. Rejects with ArgumentError for what is none. */
async function filesOf(host: Host, source: unknown): Promise<ModelFiles> {
  if (typeof source === "string" || source instanceof URL) return atAddress(host, source);
  if (source instanceof Blob || source instanceof ArrayBuffer || source instanceof Uint8Array) {
    return byName(host, { [await nameOfBytes(source)]: source });
  }
  if (Array.isArray(source) || (typeof FileList !== "undefined" && source instanceof FileList)) {
    const files = [...(source as readonly File[])];
    return byName(host, Object.fromEntries(files.map((file) => [nameInFolder(file), file])));
  }
  if (isOptions(source)) return byName(host, source as Readonly<Record<string, FileSource>>);
  const got = source === null ? "null" : `a ${typeof source}`;
  throw new ArgumentError(`${WHAT}: model: expected an address, a path, Files or bytes, got ${got}`);
}

/** How a model is read. */
export interface ReadModelOptions
  extends Pick<ReadOptions, "cache" | "onProgress" | "signal">, DownloadLimits {
  readonly file?: string | undefined;
  /** Options of `Loading` of polygrad/pipelines. */
  readonly python: Readonly<Record<string, unknown>>;
}

/** The small files that a task needs, by name. Python says which; those that are not there are left out. */
async function readSmallFiles(
  session: Session,
  files: ModelFiles,
  task: string,
  options: FileOptions,
): Promise<Record<string, Bytes>> {
  const found: Record<string, Bytes> = {};
  const missing: string[] = [];
  for (;;) {
    const args = [task, Object.keys(found), missing];
    const names = (await session.value("$pipelines.small_files", args)) as string[];
    if (names.length === 0) return found;
    await Promise.all(
      names.map(async (name) => {
        const file = await files.open(name, options);
        if (file === undefined) missing.push(name);
        else found[name] = new Bytes(await collect(file, { signal: options.signal }));
      }),
    );
  }
}

/** The files of weights, in order; the only one is opened already. */
interface Weights {
  readonly names: readonly string[];
  readonly opened?: OpenedFile;
}

/** The files of weights. Rejects with ArgumentError where there are none. */
async function findWeights(
  files: ModelFiles,
  asked: string | undefined,
  options: FileOptions,
): Promise<Weights> {
  const name = asked ?? files.weights;
  const candidates = name === undefined ? WEIGHTS : [name];
  for (const candidate of candidates) {
    const [, stem = "", count = "1"] = PART.exec(candidate) ?? [];
    if (Number(count) > 1) {
      const numbers = Array.from({ length: Number(count) }, (_, i) => String(i + 1).padStart(5, "0"));
      return { names: numbers.map((number) => `${stem}-${number}-of-${count}.gguf`) };
    }
    const opened = await files.open(candidate, options);
    if (opened === undefined) continue;
    if (candidate.endsWith(".index.json")) {
      const what = `${WHAT}: ${candidate}`;
      const names = Object.values(parseIndex(await collect(opened, { signal: options.signal }), what));
      if (names.length > 0) return { names: [...new Set(names)] };
      throw new ArgumentError(`${what}: expected the files of the model's tensors, got an empty weight_map`);
    }
    return { names: [candidate], opened };
  }
  throw new ArgumentError(
    `${WHAT}: model: expected one of the files ${candidates.join(", ")}, got none of them`,
  );
}

/** Use a file that belongs to the model. Its download ends afterwards. */
async function withFile(
  files: ModelFiles,
  name: string,
  options: FileOptions,
  use: (opened: OpenedFile) => Promise<void>,
): Promise<void> {
  const opened = await files.open(name, options);
  if (opened === undefined) {
    throw new ArgumentError(
      `${WHAT}: model: expected the file ${name}, which belongs to the model, got none`,
    );
  }
  try {
    await use(opened);
  } finally {
    void endDownload(opened);
  }
}

/** The model for a task, as Python has it: the number of its Pipeline. */
export async function readModel(
  session: Session,
  host: Host,
  task: string,
  source: ModelSource,
  options: ReadModelOptions,
): Promise<number> {
  const opening = { ...options, budget: new DownloadBudget(WHAT, options) };
  const files = await filesOf(host, source);
  const weights = await findWeights(files, options.file, opening);
  try {
    return await loadWeights(session, files, task, weights, opening);
  } finally {
    if (weights.opened !== undefined) void endDownload(weights.opened);
  }
}

async function loadWeights(
  session: Session,
  files: ModelFiles,
  task: string,
  { names, opened }: Weights,
  options: ReadModelOptions & FileOptions,
): Promise<number> {
  const { python } = options;
  const isGguf = names.every((name) => name.endsWith(".gguf"));
  const small = isGguf ? {} : await readSmallFiles(session, files, task, options);
  const number = session.callPacked("$pipelines.Loading", [task, small, names, python]);
  const loading = new Handle(session, number);
  try {
    const feeder = new Feeder(session, "pipelines", loading, options);
    if (opened !== undefined) {
      feeder.total = opened.length;
      await feeder.send(0, opened);
    } else {
      feeder.total = await sendHeaders(feeder, files, names, options);
      for (const [i, name] of names.entries()) {
        await withFile(files, name, options, (opened) => feeder.send(i, opened));
      }
    }
    const external = (await session.value("$pipelines.Loading.external", [loading])) as string[];
    const [folder = ""] = /^.*\//.exec(names[0] ?? "") ?? [];
    feeder.total = external.length > 0 ? undefined : feeder.total;
    for (const [i, name] of external.entries()) {
      await withFile(files, folder + name, options, (opened) => feeder.send(i + 1, opened));
    }
    return await feeder.finish();
  } finally {
    loading.dispose();
  }
}

/** Send the headers of several files; the length of all, where each is known. */
async function sendHeaders(
  feeder: Feeder,
  files: ModelFiles,
  names: readonly string[],
  options: FileOptions,
): Promise<number | undefined> {
  let total: number | undefined = 0;
  for (const [i, name] of names.entries()) {
    await withFile(files, name, options, async (opened) => {
      total = total === undefined || opened.length === undefined ? undefined : total + opened.length;
      await feeder.sendHeader(i, opened);
    });
  }
  return total;
}
