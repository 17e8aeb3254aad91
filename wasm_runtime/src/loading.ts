/** Exported files in memory: their Programs, on WebAssembly or a GPU, and the values, written while they arrive. */

import type { TensorData } from "./arrays";
import { DeviceError, OutOfMemoryError, ProgramError } from "./errors";
import { readHead, type Head, type NamedPrograms } from "./files";
import { PieceReader } from "./pieces";
import type { Program } from "./program";
import { sizeOf } from "./program_checks";
import { loadProgramLater, WasmMemory } from "./runner";
import type { ThreadPool } from "./thread_pool";
import { readValues, valueSpecs } from "./values";
import type { WebGPUDevice } from "./webgpu/device";
import { GpuMemory, GpuProgram } from "./webgpu/loaded";

/** What a model needs of a Program in memory. A read is answered after all earlier calls. */
export interface Loaded {
  readonly program: Program;
  readonly threads: number;
  check(variables: Readonly<Record<string, number>>): void;
  execute(variables: Readonly<Record<string, number>>): void;
  write(buffer: number, data: ArrayBufferView): void;
  writePart(buffer: number, data: ArrayBufferView, offset?: number): void;
  read(buffer: number, count: number): TensorData | Promise<TensorData>;
}

/** A host's threads and GPU. Each is requested when a model can use it. `device`: the only one that may be used. */
export interface ModelHost {
  readonly device?: string | undefined;
  /** The most memory that the buffers of a model may take. */
  readonly maxMemory?: number | undefined;
  readonly pool?: () => ThreadPool | undefined;
  /** The GPU; undefined where there is none. */
  readonly gpu?: () => Promise<WebGPUDevice | undefined>;
}

/** A memory of Programs, whose parameters and states have names. */
interface Memory {
  write(name: string, data: ArrayBufferView, offset?: number): void;
  read(name: string): TensorData | Promise<TensorData>;
}

/** Programs that share a memory. Each is compiled when it is first asked for. */
export class LoadedPrograms {
  readonly programs: NamedPrograms;
  readonly #memory: Memory;
  readonly #load: (program: Program) => Promise<Loaded>;
  readonly #loaded = new Map<string, Promise<Loaded>>();

  private constructor(programs: NamedPrograms, memory: Memory, load: (program: Program) => Promise<Loaded>) {
    this.programs = programs;
    this.#memory = memory;
    this.#load = load;
  }

  /**
   * Memory for the Programs of the first target that this host runs; they are not compiled yet. Rejects with CompileError,
   * DeviceError, OutOfMemoryError, ProgramError.
   */
  static async open(targets: readonly NamedPrograms[], host: ModelHost): Promise<LoadedPrograms> {
    const usable = targets.filter((programs) => [undefined, deviceOf(programs)].includes(host.device));
    const errors: unknown[] = [];
    for (const programs of usable) {
      try {
        return await LoadedPrograms.#openTarget(programs, host);
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length === 1) throw errors[0];
    const reasons = usable.map((programs, i) => `${deviceOf(programs)}: ${String(errors[i])}`);
    const got = [targets.map(deviceOf).join(" and "), reasons.join("; ")].filter(Boolean).join(": ");
    throw new ProgramError(
      `load: expected code for ${host.device ?? "a device of this host"}, got code for ${got}`,
    );
  }

  static async #openTarget(
    programs: NamedPrograms,
    { pool, gpu, maxMemory = Infinity }: ModelHost,
  ): Promise<LoadedPrograms> {
    const all = [...programs.values()];
    const nbytes = memoryOf(programs);
    if (nbytes > maxMemory) {
      throw new OutOfMemoryError(`load: expected a model of up to ${maxMemory} bytes, got one of ${nbytes}`);
    }
    if (deviceOf(programs) !== "WEBGPU") {
      const hasThreads = all.some(({ threads, shared_memory }) => threads > 1 && shared_memory);
      const memory = new WasmMemory(all, hasThreads ? pool?.() : undefined);
      return new LoadedPrograms(programs, memory, (program) => loadProgramLater(program, memory));
    }
    const device = await gpu?.();
    if (device === undefined) {
      throw new DeviceError(
        "load: expected a GPU for a model that was exported on WEBGPU, got none: use a browser with WebGPU, on a page " +
          "served by https or from localhost; in Node, npm install webgpu and a driver; or export the model on WASM",
      );
    }
    const memory = await GpuMemory.create(all, device);
    return new LoadedPrograms(programs, memory, (program) => GpuProgram.load(program, device, memory));
  }

  /** The Program called `name`. Rejects with CompileError, ProgramError. */
  get(name: string): Promise<Loaded> {
    const program = this.programs.get(name);
    if (program === undefined) {
      const names = [...this.programs.keys()].join(", ");
      return Promise.reject(new ProgramError(`file: expected a Program ${name}, got ${names}`));
    }
    const known = this.#loaded.get(name);
    if (known !== undefined) return known;
    const loaded = this.#load(program);
    this.#loaded.set(name, loaded);
    loaded.catch(() => this.#loaded.delete(name)); // the next call tries again
    return loaded;
  }

  /** Fill a parameter or a state from byte `offset` on. */
  write(name: string, data: ArrayBufferView, offset = 0): void {
    this.#memory.write(name, data, offset);
  }

  /** A copy of a parameter or a state, after all earlier calls. */
  read(name: string): TensorData | Promise<TensorData> {
    return this.#memory.read(name);
  }
}

const deviceOf = (programs: NamedPrograms): string | undefined => [...programs.values()][0]?.device;

/** The bytes of the buffers of Programs, which share parameters, state and the arena. */
export function memoryOf(programs: NamedPrograms): number {
  const sizes = new Map<string, number>();
  let arena = 0;
  for (const [program, { buffers, arena: own }] of programs) {
    arena = Math.max(arena, own);
    for (const [i, { role, name, size, dtype }] of buffers.entries()) {
      const place = role === "param" || role === "state" ? [name] : [program, i];
      if (role !== "scratch") sizes.set(JSON.stringify(place), size * (sizeOf(dtype) ?? 0));
    }
  }
  return [...sizes.values()].reduce((sum, nbytes) => sum + nbytes, arena);
}

/** A file in memory. */
export interface OpenedModel {
  readonly head: Head;
  readonly programs: LoadedPrograms;
}

/**
 * The file of a kind, which arrives in pieces. There is memory for all of it before its values arrive, and each of their
 * pieces is written to where it stays. Rejects with ProgramError, CompileError, OutOfMemoryError, DeviceError, and what
 * the source rejects with.
 */
export async function openModel(
  source: Uint8Array | AsyncIterable<Uint8Array>,
  kind: string,
  host: ModelHost,
): Promise<OpenedModel> {
  const reader = new PieceReader(source);
  try {
    const head = await readHead(reader, kind);
    const programs = await LoadedPrograms.open(head.targets, host);
    const specs = valueSpecs(programs.programs.values(), head.zeros);
    await readValues(reader, head.values, specs, (name, piece, offset) => {
      programs.write(name, piece, offset);
    });
    return { head, programs };
  } finally {
    await reader.close();
  }
}
