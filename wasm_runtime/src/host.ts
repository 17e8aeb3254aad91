/**
 * `WasmHost`: one WebAssembly memory for tensor data, and the kernels that import it.
 *
 * Python's WASM device talks to this under Pyodide, and the runner of exported Programs uses it without
 * Python. It knows addresses, bytes and calls; sharing the memory out is its user's business.
 */

import { CompileError } from "./errors";
import { detectFeatures, type Feature } from "./features";
import type { KernelFunction } from "./kernel_calls";
import { LaunchList, type Kernel } from "./launches";
import { compileModule } from "./modules";
import type { ThreadPool } from "./thread_pool";

const PAGE = 65536;
const MAX_PAGES = 65536;
const MIN_SHARED_PAGES = 1024;

/** The largest shared memory that this system reserves room for. */
function sharedMemory(): WebAssembly.Memory {
  for (let maximum = MAX_PAGES; ; maximum /= 2) {
    try {
      return new WebAssembly.Memory({ initial: 1, maximum, shared: true });
    } catch (error) {
      if (maximum < MIN_SHARED_PAGES) throw error;
    }
  }
}

export class WasmHost {
  readonly memory: WebAssembly.Memory;
  readonly features: readonly Feature[];
  readonly #imports: WebAssembly.Imports;
  readonly #kernels = new WeakMap<WebAssembly.Module, Map<string, Kernel>>();
  readonly #pool: ThreadPool | undefined;

  /** With a `pool`, the memory is shared with its threads; `shared` shares it also without. */
  constructor({ pool, shared = pool !== undefined }: { pool?: ThreadPool; shared?: boolean } = {}) {
    this.memory = shared ? sharedMemory() : new WebAssembly.Memory({ initial: 1 });
    this.features = [...detectFeatures(), ...(pool ? (["threads"] as const) : [])];
    this.#imports = { env: { memory: this.memory } };
    this.#pool = pool;
  }

  /** The most threads that share a run. */
  get bound(): number {
    return this.#pool?.bound ?? 1;
  }

  /** How many of them runs may use. */
  get threads(): number {
    return this.#pool?.threads ?? 1;
  }

  set threads(threads: number) {
    if (this.#pool) this.#pool.threads = threads;
  }

  /** How many threads a run would have now: workers that are still starting are not waited for. */
  get ready(): number {
    this.#pool?.start();
    return this.#pool?.acquire() ?? 1;
  }

  /** Make the memory at least `nbytes` long; its length then, or 0 when it cannot. Views of it die. */
  grow(nbytes: number): number {
    const have = this.memory.buffer.byteLength;
    if (nbytes <= have) return have;
    const pages = Math.ceil(nbytes / PAGE);
    if (pages > MAX_PAGES) return 0;
    try {
      this.memory.grow(pages - have / PAGE);
    } catch {
      return 0;
    }
    return this.memory.buffer.byteLength;
  }

  /** The bytes at `address`, not a copy; good until the memory grows. */
  view(address: number, nbytes: number): Uint8Array {
    return new Uint8Array(this.memory.buffer, address, nbytes);
  }

  /**
   * The function that the module `code` exports as `name`, instantiated once for the same bytes.
   * Throws CompileError.
   */
  kernel(name: string, code: Uint8Array): Kernel {
    try {
      const module = compileModule(code);
      const known = this.#kernels.get(module) ?? new Map<string, Kernel>();
      const found = known.get(name);
      if (found !== undefined) return found;
      const call = new WebAssembly.Instance(module, this.#imports).exports[name];
      if (typeof call !== "function") throw new Error(`no function ${name} among its exports`);
      const kernel = { name, call: call as KernelFunction, module };
      this.#kernels.set(module, known.set(name, kernel));
      return kernel;
    } catch (cause) {
      throw new CompileError(`kernel ${name}: expected a module this engine accepts, got ${String(cause)}`, {
        cause,
      });
    }
  }

  /** Calls made ready; see `LaunchList` for `plan`. */
  launches(kernels: readonly Kernel[], plan: Uint32Array, nBases: number): LaunchList {
    const workplace = this.#pool && { pool: this.#pool, memory: this.memory };
    return new LaunchList(kernels, plan, nBases, workplace);
  }
}
