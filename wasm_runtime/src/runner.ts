/**
 * Runs a serialized Program, without Python.
 *
 * All sizes of a Program are known when it is loaded. So its buffers lie one after another in a memory of its own,
 * which is freed when the `LoadedProgram` is collected.
 */

import { ARRAYS, dtypeOf, type DType, type TensorData } from "./arrays";
import { OutOfMemoryError, ProgramError } from "./errors";
import { WasmHost } from "./host";
import { BARRIER, PARALLEL, type LaunchList } from "./launches";
import { compileModuleLater } from "./modules";
import { checkVariables, readProgram, THREAD_VARIABLES, type BufferSpec, type Program } from "./program";
import { FIRST_BUFFER } from "./shared_words";
import type { ThreadPool } from "./thread_pool";

const ALIGN = 64; // also the guard after the last buffer

function arrayOf(spec: BufferSpec): (typeof ARRAYS)[DType] {
  return ARRAYS[dtypeOf(spec.dtype, "buffer")];
}

/** A Program in memory. It runs on one thread, or with those of a pool. */
export class LoadedProgram {
  readonly #host: WasmHost;
  readonly #addresses: readonly number[];
  /** The words that launches take their arguments from: the addresses of all buffers and of the arena, the variables. */
  readonly #words: Uint32Array<ArrayBuffer>;
  /** The address of the words, for the driver. */
  #table = 0;
  readonly #calls: LaunchList;

  /** `pool`: the threads of a Program that was made for several. */
  constructor(
    readonly program: Program,
    pool?: ThreadPool,
  ) {
    requireWasm(program);
    const shared = program.shared_memory;
    this.#host = new WasmHost({ shared, ...(pool && shared && program.threads > 1 && { pool }) });
    this.#words = new Uint32Array(program.buffers.length + 1 + program.variables.length);
    this.#addresses = this.#layOut();
    this.#words.set(this.#addresses);
    this.#calls = program.driver.length > 0 ? this.#prepareDriver() : this.#prepare();
  }

  /**
   * Run every launch. `inputs` fill the buffers with the role input, in order; the result is a copy of each
   * buffer with the role output, in order. Throws ProgramError when inputs or variables do not fit.
   */
  run(
    inputs: readonly ArrayBufferView[] = [],
    variables: Readonly<Record<string, number>> = {},
  ): TensorData[] {
    const slots = this.#having("input");
    if (slots.length !== inputs.length) {
      throw new ProgramError(`run: expected ${slots.length} inputs, got ${inputs.length}`);
    }
    inputs.forEach((data, i) => {
      this.write(slots[i] ?? 0, data);
    });
    this.execute(variables);
    return this.#having("output").map((buffer) => this.read(buffer));
  }

  /** How many threads a run would have now: workers that are still starting are not waited for. */
  get threads(): number {
    return this.#host.ready;
  }

  /** Run every launch on the contents of the buffers. Throws ProgramError when variables do not fit. */
  execute(variables: Readonly<Record<string, number>> = {}): void {
    this.check(variables);
    this.program.variables.forEach(({ name }, i) => {
      this.#words[this.#addresses.length + i] = variables[name] ?? 0;
    });
    if (this.#table === 0) this.#calls.bases.set(this.#words);
    else new Uint32Array(this.#host.memory.buffer, this.#table).set(this.#words);
    this.#calls.run();
  }

  /** Throws ProgramError unless `variables` has all of the Program's, in their bounds. */
  check(variables: Readonly<Record<string, number>>): void {
    checkVariables(this.program, variables);
  }

  /** Fill buffer number `buffer` (a parameter or state, say) with the bytes of `data`. */
  write(buffer: number, data: ArrayBufferView): void {
    const { spec, address } = this.#buffer(buffer);
    const nbytes = spec.size * arrayOf(spec).BYTES_PER_ELEMENT;
    if (data.byteLength !== nbytes) {
      throw new ProgramError(
        `buffer ${buffer}: expected ${spec.size} x ${spec.dtype}, ${nbytes} bytes, got ${data.byteLength} bytes`,
      );
    }
    this.#host.view(address, nbytes).set(new Uint8Array(data.buffer, data.byteOffset, nbytes));
  }

  /** Fill the first elements of buffer number `buffer` with `data`. */
  writeStart(buffer: number, data: ArrayBufferView): void {
    const { spec, address } = this.#buffer(buffer);
    const nbytes = spec.size * arrayOf(spec).BYTES_PER_ELEMENT;
    if (data.byteLength > nbytes) {
      throw new ProgramError(`buffer ${buffer}: expected ${nbytes} bytes at most, got ${data.byteLength}`);
    }
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    this.#host.view(address, data.byteLength).set(bytes);
  }

  /** A copy of buffer number `buffer`, or of its first `count` elements. */
  read(buffer: number, count?: number): TensorData {
    const { spec, address } = this.#buffer(buffer);
    const length = Math.min(count ?? spec.size, spec.size);
    return new (arrayOf(spec))(this.#host.memory.buffer, address, length).slice();
  }

  #having(role: BufferSpec["role"]): number[] {
    return [...this.program.buffers.keys()].filter((i) => this.program.buffers[i]?.role === role);
  }

  #buffer(number: number): { spec: BufferSpec; address: number } {
    const spec = this.program.buffers[number];
    const address = this.#addresses[number];
    if (spec === undefined || address === undefined) {
      throw new ProgramError(`buffer: expected 0 to ${this.program.buffers.length - 1}, got ${number}`);
    }
    return { spec, address };
  }

  /** An address for every buffer and, last, for the arena. */
  #layOut(): number[] {
    let end = FIRST_BUFFER;
    const take = (nbytes: number): number => {
      const address = end;
      end += Math.ceil(nbytes / ALIGN) * ALIGN;
      return address;
    };
    const arena = take(this.program.arena);
    const addresses = this.program.buffers.map((spec) =>
      spec.role === "scratch" ? arena + spec.offset : take(spec.size * arrayOf(spec).BYTES_PER_ELEMENT),
    );
    this.#table = this.program.driver.length > 0 ? take(this.#words.byteLength) : 0;
    if (this.#host.grow(end + ALIGN) === 0) {
      throw new OutOfMemoryError(`loadProgram: expected a memory of ${end + ALIGN} bytes, got a refusal`);
    }
    return [...addresses, arena];
  }

  /** The driver as the only call. It takes the table and, if a kernel is parallel, the thread and the number of threads. */
  #prepareDriver(): LaunchList {
    const driver = this.#host.kernel("run", this.program.driver);
    const parallel = this.program.kernels.some((kernel) => kernel.parallel);
    const plan = parallel ? [0, PARALLEL, 3, 0, 0, 1, 0, 2, 0] : [0, 0, 1, 0, 0];
    const calls = this.#host.launches([driver], Uint32Array.from(plan), 1);
    calls.bases[0] = this.#table;
    return calls;
  }

  /** The launches as calls, which take their arguments from the words. */
  #prepare(): LaunchList {
    const { program } = this;
    const kernels = program.kernels.map(({ name, code }) => this.#host.kernel(name, code));
    const first = program.buffers.length + 1;
    const variables = new Map(program.variables.map(({ name }, i) => [name, first + i]));
    THREAD_VARIABLES.forEach((name, i) => variables.set(name, first + program.variables.length + i));
    const plan = program.launches.flatMap((launch) => {
      const kernel = program.kernels[launch.kernel];
      const names = kernel?.variables ?? [];
      const flags = (kernel?.parallel ? PARALLEL : 0) | (launch.barrier ? BARRIER : 0);
      return [
        ...[launch.kernel, flags, launch.bindings.length + names.length],
        ...launch.bindings.flatMap(({ buffer, offset }) => [buffer, offset]),
        ...names.flatMap((name) => [variables.get(name) ?? 0, 0]),
      ];
    });
    return this.#host.launches(kernels, Uint32Array.from(plan), this.#words.length);
  }
}

function requireWasm(program: Program): void {
  if (program.device !== "WASM") {
    throw new ProgramError(`loadProgram: expected a Program for WASM, got one for ${program.device}`);
  }
  const other = program.kernels.find(({ language }) => language !== "wasm");
  if (other !== undefined) {
    throw new ProgramError(
      `loadProgram: kernel ${other.name}: expected wasm, got ${other.language}: use a newer polygrad/runtime`,
    );
  }
}

/** `new LoadedProgram`, with modules that are compiled in the background. */
export async function loadProgramLater(program: Program, pool?: ThreadPool): Promise<LoadedProgram> {
  requireWasm(program);
  const codes = program.driver.length > 0 ? [program.driver] : program.kernels.map(({ code }) => code);
  await Promise.all(codes.map(compileModuleLater));
  return new LoadedProgram(program, pool); // it finds the compiled modules by their bytes
}

/** Load the serialized Program `data`. Throws ProgramError, CompileError, OutOfMemoryError. */
export function loadProgram(data: Uint8Array): LoadedProgram {
  return new LoadedProgram(readProgram(data));
}
