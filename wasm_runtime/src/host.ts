/**
 * `WasmHost`: one WebAssembly memory for tensor data, and the kernels that import it.
 *
 * Under Pyodide, Python's WASM device uses it; without Python, the runner of exported Programs does. It knows
 * addresses, bytes and calls; its users allocate the memory.
 */

import { CompileError } from "./errors";
import { detectFeatures, requireDots, type Feature } from "./features";
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

  /** With a `pool`, the memory is shared with its threads. `shared` makes it shareable without one. */
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

  /** How many threads runs may use. */
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

  /** Grow the memory to at least `nbytes`: its new length, or 0 when it cannot grow. Views of it become invalid. */
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

  /** A view of the bytes at `address`, valid until the memory grows. */
  view(address: number, nbytes: number): Uint8Array {
    return new Uint8Array(this.memory.buffer, address, nbytes);
  }

  /**
   * The function that the module `code` exports as `name`, instantiated once for the same bytes.
   * Throws CompileError.
   */
  kernel(name: string, code: Uint8Array): Kernel {
    requireDots(code);
    try {
      const module = compileModule(code);
      const kernelsByName = this.#kernels.get(module) ?? new Map<string, Kernel>();
      const cached = kernelsByName.get(name);
      if (cached !== undefined) return cached;
      const call = new WebAssembly.Instance(module, this.#imports).exports[name];
      if (typeof call !== "function") throw new Error(`no function ${name} among its exports`);
      const kernel = { name, call: call as KernelFunction, module };
      this.#kernels.set(module, kernelsByName.set(name, kernel));
      return kernel;
    } catch (cause) {
      throw new CompileError(`kernel ${name}: expected a module this engine accepts, got ${String(cause)}`, {
        cause,
      });
    }
  }

  /** A list of calls; see `LaunchList` for `plan`. */
  launches(kernels: readonly Kernel[], plan: Uint32Array, nBases: number): LaunchList {
    const workplace = this.#pool && { pool: this.#pool, memory: this.memory };
    return new LaunchList(kernels, plan, nBases, workplace);
  }
}
