/**
 * Runs a serialized Program, without Python.
 *
 * All sizes of a Program are known when it is loaded. So its buffers lie one after another in a memory of its own, or
 * of several Programs, which is freed when these are collected.
 */

import type { TensorData } from "./arrays";
import { arrayOf, bufferOf, bytesOf, checkPart, checkWhole, isValue, valueNamed } from "./buffers";
import { InternalError, OutOfMemoryError, ProgramError } from "./errors";
import { requireDots } from "./features";
import { WasmHost } from "./host";
import { BARRIER, PARALLEL, type LaunchList } from "./launches";
import { compileModuleLater } from "./modules";
import { checkVariables, readProgram, type BufferSpec, type Program } from "./program";
import { THREAD_VARIABLES } from "./program_checks";
import { FIRST_BUFFER } from "./shared_words";
import type { ThreadPool } from "./thread_pool";

const ALIGN = 64; // also the guard after the last buffer

/** A parameter or state. */
interface Value {
  readonly spec: BufferSpec;
  readonly address: number;
}

/** Where the parts of a Program are: an address for each buffer and, last, for the arena; and for the driver's table. */
interface Places {
  readonly addresses: readonly number[];
  readonly table: number;
}

/** One memory for Programs: parameters and states of one name are shared, and so is the arena. It is zero at first. */
export class WasmMemory {
  readonly host: WasmHost;
  readonly #places = new Map<Program, Places>();
  readonly #values = new Map<string, Value>();

  /** Throws CompileError, OutOfMemoryError. `pool`: the threads of Programs that were made for several. */
  constructor(programs: readonly Program[], pool?: ThreadPool) {
    programs.forEach(requireWasm);
    programs.flatMap(codesOf).forEach(requireDots);
    const shared = programs.some(({ shared_memory }) => shared_memory);
    const hasThreads = shared && programs.some(({ threads }) => threads > 1);
    this.host = new WasmHost({ shared, ...(pool && hasThreads && { pool }) });
    let end = FIRST_BUFFER;
    const take = (nbytes: number): number => {
      const address = end;
      end += Math.ceil(nbytes / ALIGN) * ALIGN;
      return address;
    };
    const arena = take(programs.reduce((most, program) => Math.max(most, program.arena), 0));
    for (const program of programs) {
      const addresses = program.buffers.map((spec) => {
        if (spec.role === "scratch") return arena + spec.offset;
        const known = isValue(spec) ? this.#values.get(spec.name) : undefined;
        const address = known?.address ?? take(bytesOf(spec));
        if (isValue(spec)) this.#values.set(spec.name, { spec, address });
        return address;
      });
      const table = program.driver.length > 0 ? take(4 * wordsOf(program)) : 0;
      this.#places.set(program, { addresses: [...addresses, arena], table });
    }
    if (this.host.grow(end + ALIGN) === 0) {
      throw new OutOfMemoryError(`loadProgram: expected a memory of ${end + ALIGN} bytes, got a refusal`);
    }
  }

  /** Where the parts of one of its Programs are. */
  placesOf(program: Program): Places {
    const places = this.#places.get(program);
    if (places === undefined) throw new InternalError("a Program without places in this memory");
    return places;
  }

  /** Fill the bytes of a parameter or state from byte `offset` on. */
  write(name: string, data: ArrayBufferView, offset = 0): void {
    const { spec, address } = this.#value(name);
    writeAt(this.host, spec, address, name, data, offset);
  }

  /** A copy of a parameter or state. */
  read(name: string): TensorData {
    const { spec, address } = this.#value(name);
    return readAt(this.host, spec, address, spec.size);
  }

  #value(name: string): Value {
    return valueNamed(this.#values, name);
  }
}

const wordsOf = ({ buffers, variables }: Program): number => buffers.length + 1 + variables.length;

function writeAt(
  host: WasmHost,
  spec: BufferSpec,
  address: number,
  name: string | number,
  data: ArrayBufferView,
  offset: number,
): void {
  checkPart(spec, name, data, offset);
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  host.view(address + offset, data.byteLength).set(bytes);
}

function readAt(host: WasmHost, spec: BufferSpec, address: number, count: number): TensorData {
  return new (arrayOf(spec))(host.memory.buffer, address, Math.min(count, spec.size)).slice();
}

/** A Program in memory. It runs on one thread, or with those of a pool. */
export class LoadedProgram {
  readonly #host: WasmHost;
  readonly #addresses: readonly number[];
  /** The words that launches take their arguments from: the addresses of all buffers and of the arena, the variables. */
  readonly #words: Uint32Array<ArrayBuffer>;
  /** The address of the words, for the driver. */
  readonly #table: number;
  readonly #calls: LaunchList;

  /** `pool`: the threads of a Program that was made for several. `memory`: one that it shares with others. */
  constructor(
    readonly program: Program,
    pool?: ThreadPool,
    memory = new WasmMemory([program], pool),
  ) {
    this.#host = memory.host;
    const { addresses, table } = memory.placesOf(program);
    this.#addresses = addresses;
    this.#table = table;
    this.#words = new Uint32Array(wordsOf(program));
    this.#words.set(addresses);
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
    checkWhole(bufferOf(this.program, buffer), buffer, data);
    this.writePart(buffer, data);
  }

  /** Fill the bytes of buffer number `buffer` from byte `offset` on. */
  writePart(buffer: number, data: ArrayBufferView, offset = 0): void {
    const { spec, address } = this.#buffer(buffer);
    writeAt(this.#host, spec, address, buffer, data, offset);
  }

  /** A copy of buffer number `buffer`, or of its first `count` elements. */
  read(buffer: number, count?: number): TensorData {
    const { spec, address } = this.#buffer(buffer);
    return readAt(this.#host, spec, address, count ?? spec.size);
  }

  #having(role: BufferSpec["role"]): number[] {
    return [...this.program.buffers.keys()].filter((i) => this.program.buffers[i]?.role === role);
  }

  #buffer(number: number): { spec: BufferSpec; address: number } {
    return { spec: bufferOf(this.program, number), address: this.#addresses[number] ?? 0 };
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

/** The modules of a Program. */
function codesOf({ driver, kernels }: Program): Uint8Array[] {
  return driver.length > 0 ? [driver] : kernels.map(({ code }) => code);
}

/** `new LoadedProgram`, with modules that are compiled in the background. */
export async function loadProgramLater(program: Program, memory: WasmMemory): Promise<LoadedProgram> {
  await Promise.all(codesOf(program).map(compileModuleLater));
  return new LoadedProgram(program, undefined, memory); // it finds the compiled modules by their bytes
}

/** Load the serialized Program `data`. Rejects with ProgramError, CompileError, OutOfMemoryError. */
export async function loadProgram(data: Uint8Array): Promise<LoadedProgram> {
  return new LoadedProgram(await readProgram(data));
}
