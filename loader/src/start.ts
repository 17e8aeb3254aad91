/**
 * Starts Pyodide with polygrad in it, in the quickest way:
 *
 * 1. from a snapshot of its memory, if an earlier start of the same build on the same engine stored one;
 * 2. else from bytecode; then it stores a snapshot for the next start.
 *
 * Both give the same Python. When a snapshot fails for any reason, the second way follows. A whole snapshot that does
 * not start is never tried again.
 */

import type { loadPyodide as LoadPyodide, PyodideAPI } from "pyodide";

import { abortable } from "../../wasm_runtime/src/abort";
import { digestOf } from "../../wasm_runtime/src/digest";
import { WasmHost } from "../../wasm_runtime/src/host";
import type { ThreadPool } from "../../wasm_runtime/src/thread_pool";
import { ASSETS } from "./assets";
import { bundle } from "./bundle";
import { decompressed } from "./gzip";
import { KernelCache, type KernelStorage } from "./kernels";
import { Polygrad, routeOutput, type CommonOptions, type Origin } from "./polygrad";
import {
  fileSystem,
  type CreateModule,
  type EmscriptenModule,
  type EmscriptenSettings,
  type FileSystem,
  type PyFunction,
  type PyProxy,
} from "./pyodide_types";
import { packSnapshot, restoring, takeSnapshot, type Restoring } from "./snapshot";
import type { Stopper } from "./stops";
import { recall, recallUnchecked, remember, type ByteStore, type Recalled } from "./store";

/** What a start needs of its host. Files are promises that are requested at once, so they arrive together. */
export interface Host {
  readonly loadPyodide: typeof LoadPyodide;
  /** The version of what `loadPyodide` loads. */
  readonly version: string;
  /** What `pyodide.asm.mjs` exports. */
  readonly createModule: Promise<CreateModule>;
  /** The folder of Pyodide's files, unless it finds them itself. */
  readonly indexURL?: string;
  /** The address of the file `ASSETS.stdlib`, or of its gzip form. */
  readonly stdLibURL: string;
  /** The file `ASSETS.package`. */
  readonly archive: () => Promise<Bytes>;
  /** A wheel of the caller's, to be used in its place. */
  readonly wheel?: Promise<Bytes> | undefined;
  /** The whole standard library, synchronously: an import waits for it. Throws when it cannot be read. */
  readonly readStdlib: () => Uint8Array;
  /** The file `ASSETS.applications` or its gzip form, in the same way. */
  readonly readApplications: () => Uint8Array;
  /** The JavaScript engine and its version: a snapshot fits no other. */
  readonly engine: string;
  /** Where snapshots and bytecode of wheels are kept. */
  readonly store?: ByteStore | undefined;
  /** Open the GPU: a `WebGPUDevice` or an object with its calls, or a promise of one; undefined where there is none. */
  readonly openGpu: () => unknown;
  /** The bundle of `hub.ts`, or a promise of it. */
  readonly loadHub: () => unknown;
  /** Where compiled kernels are kept: a folder of Node's, or a database. */
  readonly kernels?: string | KernelStorage | undefined;
}

/** A stage of a start. */
type Stage = keyof typeof FRACTIONS;

/** A host, and the function that reports progress. */
interface Start extends Host {
  readonly report: (stage: Stage) => void;
}

type Bytes = Uint8Array<ArrayBuffer>;
type Variables = Record<string, string>;

/** The name under which Python imports the host. */
const HOST_MODULE = "polygrad_host";

/** Where polygrad lies in Python's file system. */
const ARCHIVE = "/lib/polygrad.zip";

/** Where the folder of compiled kernels lies in it. */
const KERNELS = "/var/cache/polygrad";

/** Python reads variables of this prefix when it starts, so a snapshot would ignore them. */
const READ_AT_START = "PYTHON";

/** The archive from which polygrad is imported. */
interface Archive {
  /** Changes with the content: a snapshot remembers where in the archive each module is. */
  readonly id: string;
  readonly bytes: Promise<Bytes>;
}

/** The archive of the build, or the archive that an earlier start made of the caller's wheel, or that wheel. */
async function findPackage({ archive, wheel, store, version }: Host): Promise<Archive | Wheel> {
  const bytes = await wheel;
  const key = bytes && (await digestOf(bytes));
  if (!bytes || !key || key === ASSETS.wheel) return { id: ASSETS.package, bytes: archive() };
  const made = store && (await recall(store, `bytecode-${version}-${key}`));
  return made ? { id: await digestOf(made), bytes: Promise.resolve(made) } : { key, wheel: bytes };
}

interface Wheel {
  readonly key: string;
  readonly wheel: Bytes;
}

/** Have `settings` decompress the standard library if it came as a gzip file, before Python starts. */
function decompressStdlib(settings: EmscriptenSettings): void {
  const { preRun } = settings;
  const decompress = async (module: EmscriptenModule): Promise<void> => {
    const { FS, API } = module;
    const path = `/lib/python${API.pyVersionTuple.slice(0, 2).join("")}.zip`;
    FS.writeFile(path, await decompressed(FS.readFile(path)));
  };
  const prepare = async (module: EmscriptenModule): Promise<void> => {
    module.addRunDependency("polygrad");
    await Promise.all(preRun.map((run) => run(module)));
    await decompress(module).catch(() => undefined); // without a standard library Python says that it cannot start
    module.removeRunDependency("polygrad");
  };
  settings.preRun = [(module) => void prepare(module)];
}

/** Start Pyodide, with polygrad's `archive` and from a snapshot where they are given. */
async function boot(
  host: Start,
  env: Variables,
  archive: Promise<Bytes> | undefined,
  snapshot?: Restoring,
): Promise<PyodideAPI> {
  const config = {
    ...(host.indexURL !== undefined && { indexURL: host.indexURL }),
    env,
    stdLibURL: host.stdLibURL,
    fsInit: async (fs: Pick<FileSystem, "writeFile">) => {
      const bytes = await archive?.catch(() => undefined); // the error is thrown below: Pyodide does not catch it here
      if (bytes) fs.writeFile(ARCHIVE, bytes);
    },
    ...snapshot,
    createPyodideModule: async (settings: EmscriptenSettings) => {
      if (host.stdLibURL.endsWith(".gz")) decompressStdlib(settings);
      const createModule = snapshot?.createPyodideModule ?? (await host.createModule);
      const module = await createModule(settings);
      host.report("start");
      return module;
    },
  };
  const pyodide = await host.loadPyodide(config as unknown as Parameters<typeof LoadPyodide>[0]);
  await archive;
  return pyodide;
}

/** Start from bytecode, and import everything that a first tensor needs; also the id of the archive. */
async function start(
  host: Start,
  env: Variables,
  source: Archive | Wheel,
): Promise<{ pyodide: PyodideAPI; id: string }> {
  const pyodide = await boot(host, env, undefined);
  let id: string;
  if ("id" in source) {
    fileSystem(pyodide).writeFile(ARCHIVE, await source.bytes); // Python has started while it arrived
    id = source.id;
  } else {
    const made = bundle(pyodide, source.wheel, ARCHIVE);
    fileSystem(pyodide).writeFile(ARCHIVE, made);
    id = await digestOf(made);
    if (host.store) await remember(host.store, `bytecode-${host.version}-${source.key}`, made);
  }
  host.report("import");
  // A wheel may import modules that are not in the standard library's first part. Unless it did, Python holds no
  // JavaScript objects, and a snapshot can be taken.
  register(pyodide, host);
  call(pyodide, "add_package", ARCHIVE);
  pyodide.unregisterJsModule(HOST_MODULE);
  return { pyodide, id };
}

/** Call a function of `python/start.py`, which is bytecode in the first part of the standard library. */
function call(pyodide: PyodideAPI, name: string, ...args: unknown[]): void {
  const start = pyodide.pyimport("_polygrad_start") as PyProxy;
  const called = (start as unknown as Record<string, PyFunction | undefined>)[name];
  try {
    if (called === undefined) throw new Error(`internal: python/start.py has no function ${name}`);
    called(...args);
  } finally {
    called?.destroy();
    start.destroy();
  }
}

/** Register the functions of the host that Python calls. `first`: the first GPU; the result tells whether Python has one. */
function register(
  pyodide: PyodideAPI,
  { readStdlib, readApplications, openGpu, loadHub }: Host,
  pool?: ThreadPool,
  first?: unknown,
  stopper?: Stopper,
): { readonly opened: boolean } {
  const state = { opened: false, first };
  pyodide.registerJsModule(HOST_MODULE, {
    openHost: () => {
      const wasm = new WasmHost(pool && { pool });
      stopper?.watch(wasm.memory);
      return wasm;
    },
    openGpu: () => {
      const gpu = state.first ?? openGpu();
      [state.opened, state.first] = [true, undefined];
      return gpu;
    },
    loadHub,
    completeStdlib: (path: string) => {
      fileSystem(pyodide).writeFile(path, readStdlib());
    },
    completePackage: (path: string) => {
      fileSystem(pyodide).writeFile(path, readApplications());
    },
  });
  return state;
}

/** Start from a snapshot; undefined when that fails for any reason. */
async function restore(
  host: Start,
  { bytes, whole }: Recalled,
  env: Variables,
  archive: Promise<Bytes>,
): Promise<PyodideAPI | undefined> {
  try {
    const pyodide = await boot(host, env, archive, restoring(bytes, whole, host.createModule));
    call(pyodide, "refresh");
    return pyodide;
  } catch {
    return undefined;
  }
}

/** Store `snapshot` when this thread is idle. */
async function keep(store: ByteStore, key: string, snapshot: Uint8Array): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve));
  await remember(store, key, packSnapshot(snapshot));
}

/** The key of the snapshot of a Python that has imported the archive `id`. */
async function snapshotKey({ engine }: Host, id: string): Promise<string> {
  const parts = [ASSETS.pyodide, ASSETS.stdlib, id, engine].join("\n");
  return `snapshot-${await digestOf(new TextEncoder().encode(parts))}`;
}

/** Devices for which the GPU is opened before Python starts. */
const WANTS_GPU = /^(webgpu|auto)$/i;

/** The fraction of the time that has usually passed when a stage begins. */
const FRACTIONS = { files: 0, start: 0.3, import: 0.8, ready: 1 } as const;

interface Started {
  readonly pyodide: PyodideAPI;
  readonly origin: Origin;
  readonly kept?: Promise<void>;
  readonly kernels: KernelCache | undefined;
}

/** Start in the quickest way. `env`: variables that Python needs from the start. */
async function startQuickly(host: Start, store: ByteStore | undefined, env: Variables): Promise<Started> {
  const source = await findPackage(host);
  const storage = host.kernels;
  const openKernels = (build: string): Promise<KernelCache> | undefined =>
    typeof storage === "object" ? KernelCache.open(storage, build) : undefined;
  let kernels = "id" in source ? openKernels(source.id) : undefined;
  let refused = false;
  if (store && "id" in source) {
    const entry = await recallUnchecked(store, await snapshotKey(host, source.id));
    const pyodide = entry?.length ? await restore(host, entry, env, source.bytes) : undefined;
    if (pyodide) return { pyodide, origin: "snapshot", kernels: await kernels };
    // A whole snapshot did not start, or an empty entry says so: this engine cannot restore its own snapshots.
    refused = entry !== undefined && (await entry.whole);
  }
  const { pyodide, id } = await start(host, env, source);
  kernels ??= openKernels(id);
  const snapshot = refused ? new Uint8Array() : store && takeSnapshot(pyodide);
  const kept = store && snapshot && snapshotKey(host, id).then((key) => keep(store, key, snapshot));
  return { pyodide, origin: "bytecode", kernels: await kernels, ...(kept && { kept }) };
}

/** Mount the folder of compiled kernels, if there is one; the value of POLYGRAD_CACHE. */
function mountKernels(pyodide: PyodideAPI, { kernels }: Host): string {
  if (typeof kernels !== "string") return "0";
  try {
    pyodide.mountNodeFS(KERNELS, kernels);
    return KERNELS;
  } catch {
    return "0"; // no folder can be mounted: kernels are compiled at every start
  }
}

/**
 * Start Python with polygrad in it. `env` are environment variables in addition to those in `options`.
 *
 * Throws an Error when a file cannot be read, or when Pyodide has another version than the one of the build.
 */
export async function startPolygrad(
  host: Host,
  options: CommonOptions,
  env: Variables,
  pool: ThreadPool | undefined,
): Promise<Polygrad> {
  return abortable(startOnHost(host, options, env, pool), options.signal);
}

async function startOnHost(
  host: Host,
  options: CommonOptions,
  env: Variables,
  pool: ThreadPool | undefined,
): Promise<Polygrad> {
  if (host.version !== ASSETS.pyodide) {
    throw new Error(
      `polygrad: expected Pyodide ${ASSETS.pyodide}, got ${host.version}: use the files of that version`,
    );
  }
  const variables = { ...env, ...options.env };
  // The other variables are set when Python runs: a snapshot does not contain them.
  const early = Object.fromEntries(
    Object.entries(variables).filter(([name]) => name === "HOME" || name.startsWith(READ_AT_START)),
  );
  const store = Object.keys(early).some((name) => name.startsWith(READ_AT_START)) ? undefined : host.store;
  const report = (stage: Stage): void => {
    options.onProgress?.({ stage, fraction: FRACTIONS[stage] });
  };
  report("files");
  const keepsKernels = !["", "0"].includes(variables.POLYGRAD_CACHE ?? "asked for");
  const own = { ...host, kernels: keepsKernels ? host.kernels : undefined, report };
  const { pyodide, origin, kept, kernels } = await startQuickly(own, store, early);
  // Where Python cannot wait for the GPU later, it is opened before.
  const gpu = WANTS_GPU.test(variables.DEVICE ?? "") ? await host.openGpu() : undefined;
  const state = register(pyodide, host, pool, gpu, options.stopper);
  variables.POLYGRAD_CACHE = mountKernels(pyodide, own);
  if (kernels) call(pyodide, "keep_kernels", kernels);
  const dictionary = pyodide.toPy(variables) as PyProxy;
  call(pyodide, "set_environment", dictionary);
  dictionary.destroy();
  routeOutput(pyodide, options);
  report("ready");
  return new Polygrad(pyodide, origin, kept, state, options.stopper);
}
