/**
 * `WasmHost`: one WebAssembly memory for tensor data, and the kernels that import it.
 *
 * Python's WASM device talks to this under Pyodide, and the runner of exported Programs uses it without
 * Python. It knows addresses, bytes and calls; sharing the memory out is its user's business.
 */

import { CompileError } from "./errors";
import { detectFeatures, type Feature } from "./features";
import { LaunchList, type Kernel, type KernelFunction } from "./launches";
import { compileModule } from "./modules";

const PAGE = 65536;
const MAX_PAGES = 65536;

export class WasmHost {
  readonly memory = new WebAssembly.Memory({ initial: 1 });
  readonly features: readonly Feature[] = detectFeatures();
  readonly #imports = { env: { memory: this.memory } };
  readonly #kernels = new WeakMap<WebAssembly.Module, Map<string, Kernel>>();

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
  view(address: number, nbytes: number): Uint8Array<ArrayBuffer> {
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
    return new LaunchList(kernels, plan, nBases);
  }
}
