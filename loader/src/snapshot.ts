/**
 * Snapshots of the memory of a Python that has imported polygrad, from which later starts begin.
 *
 * Pyodide makes and restores snapshots; that is undocumented, and works for the same build only. Most of the memory is
 * zero, so only the other pages are stored. They are copied into the new module's memory before Pyodide restores its
 * JavaScript side. Pyodide's own copy would not fit into a memory that has grown.
 *
 *     u32 number of runs | u32 bytes of memory | u32 bytes of state | runs: u32 offset, u32 length | state | pages
 */

import type { PyodideAPI } from "pyodide";

import type { CreateModule, EmscriptenModule } from "./pyodide_types";

const PAGE = 4096;
const WORDS_OF_HEAD = 3;

/** Options by which `loadPyodide` starts from a snapshot. */
export interface Restoring {
  readonly _loadSnapshot: Promise<Uint8Array>;
  readonly createPyodideModule: CreateModule;
}

/** The part of Pyodide's API that configures snapshots. */
interface SnapshotConfig {
  readonly _api: { readonly config: { _makeSnapshot?: boolean } };
}

/**
 * The current memory of `pyodide`; undefined when it holds objects that cannot be stored. It must not have run code of
 * the user's.
 */
export function takeSnapshot(pyodide: PyodideAPI): Uint8Array | undefined {
  // If a start asked for `js`, it would be a proxy that records every path, permanently.
  const { config } = (pyodide as unknown as SnapshotConfig)._api;
  config._makeSnapshot = true;
  try {
    return pyodide.makeMemorySnapshot();
  } catch {
    return undefined; // JavaScript objects are alive in Python
  } finally {
    config._makeSnapshot = false;
  }
}

function isZero(words: Uint32Array, from: number, to: number): boolean {
  for (let i = from; i < to; i++) if (words[i] !== 0) return false;
  return true;
}

/** The runs of pages that are not zero: offset and length in turn. */
function runsOf(memory: Uint8Array): number[] {
  const words = new Uint32Array(memory.buffer, memory.byteOffset, memory.length >> 2);
  const runs: number[] = [];
  let end = -1;
  for (let offset = 0; offset < memory.length; offset += PAGE) {
    if (isZero(words, offset >> 2, (offset + PAGE) >> 2)) continue;
    if (offset === end) runs[runs.length - 1] = (runs.at(-1) ?? 0) + PAGE;
    else runs.push(offset, PAGE);
    end = offset + PAGE;
  }
  return runs;
}

/** A snapshot of Pyodide's in the form that is stored; empty for an empty snapshot. */
export function packSnapshot(snapshot: Uint8Array): Uint8Array<ArrayBuffer> {
  if (snapshot.length === 0) return new Uint8Array();
  // Pyodide's own format: a state, whose length is its second word, and after it the whole memory.
  const stateBytes = new DataView(snapshot.buffer, snapshot.byteOffset).getUint32(4, true);
  const memory = snapshot.subarray(stateBytes);
  const runs = runsOf(memory);
  const head = Uint32Array.of(runs.length / 2, memory.length, stateBytes, ...runs);
  let size = head.byteLength + stateBytes;
  for (let i = 1; i < runs.length; i += 2) size += runs[i] ?? 0;
  const packed = new Uint8Array(size);
  packed.set(new Uint8Array(head.buffer));
  packed.set(snapshot.subarray(0, stateBytes), head.byteLength);
  let at = head.byteLength + stateBytes;
  for (let i = 0; i < runs.length; i += 2) {
    const [offset = 0, length = 0] = runs.slice(i, i + 2);
    packed.set(memory.subarray(offset, offset + length), at);
    at += length;
  }
  return packed;
}

interface Unpacked {
  /** The length of the memory. */
  readonly nbytes: number;
  readonly runs: Uint32Array;
  /** What Pyodide restores on the JavaScript side. */
  readonly state: Uint8Array;
  readonly pages: Uint8Array;
}

/** Write the stored pages into the memory of a module that has not run yet. */
function fill(module: EmscriptenModule, { nbytes, runs, pages }: Unpacked): void {
  if (module.HEAPU8.length < nbytes && module.growMemory(nbytes) === undefined) {
    throw new RangeError(`polygrad: expected a memory that grows to ${nbytes} bytes, got one that does not`);
  }
  const heap = module.HEAPU8;
  let [end, at] = [0, 0];
  for (let i = 0; i < runs.length; i += 2) {
    const [offset = 0, length = 0] = runs.subarray(i, i + 2);
    heap.fill(0, end, offset);
    heap.set(pages.subarray(at, at + length), offset);
    end = offset + length;
    at += length;
  }
  heap.fill(0, end);
}

/** The parts of a packed snapshot. Other bytes are not detected here: their parts are meaningless. */
function unpack(packed: Uint8Array): Unpacked {
  const [count = 0, nbytes = 0, stateBytes = 0] = new Uint32Array(packed.slice(0, 4 * WORDS_OF_HEAD).buffer);
  const bodyAt = 4 * (WORDS_OF_HEAD + 2 * count);
  return {
    nbytes,
    runs: new Uint32Array(packed.slice(4 * WORDS_OF_HEAD, bodyAt).buffer),
    state: packed.slice(bodyAt, bodyAt + stateBytes),
    pages: packed.subarray(bodyAt + stateBytes),
  };
}

/** Options that start Pyodide from a packed snapshot. The start fails before it uses one that is not `whole`. */
export function restoring(
  packed: Promise<Uint8Array>,
  whole: Promise<boolean>,
  createModule: Promise<CreateModule>,
): Restoring {
  const unpacked = packed.then(unpack);
  const state = unpacked.then((parts) => parts.state);
  state.catch(() => undefined); // reported where it is awaited, perhaps later
  return {
    _loadSnapshot: state,
    createPyodideModule: async (settings) => {
      const create = await createModule;
      const module = await create(settings);
      if (!(await whole)) throw new Error("polygrad: the snapshot is damaged");
      fill(module, await unpacked);
      return module;
    },
  };
}
