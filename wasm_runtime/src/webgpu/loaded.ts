/**
 * `GpuProgram`: a serialized Program of device WEBGPU in memory, run without Python.
 *
 * As in `polygrad/runtime/webgpu/device.py`, all launches are one list of steps and one submit. Here every buffer has
 * memory of its own, so no two buffers of a launch are the same memory. `tests/runtime/test_shared_constants.py` compares
 * the constants with Python's.
 */

import type { TensorData } from "../arrays";
import { arrayOf, bufferOf, bytesOf, checkPart, checkWhole, isValue, valueNamed } from "../buffers";
import { OutOfMemoryError, ProgramError } from "../errors";
import { gridSize } from "../grid";
import { checkVariables, type BufferSpec, type KernelSpec, type Program } from "../program";
import type { AdapterDescription, WebGPUDevice } from "./device";
import { DISPATCH } from "./steps";

const ALIGN = 256; // bytes: a binding starts at a multiple
const WORD = 4; // bytes: offsets and sizes of copies are multiples
/** The first characters of a kernel with 16-bit floats in memory. */
const ENABLE_F16 = "enable f16;";
/** The first words of every kernel's uniform buffer: infinity, NaN and zero of float32, and zero bits. */
const CONSTANTS = [0x7f800000, 0x7fc00000, 0, 0];

const roundUp = (n: number, to: number): number => Math.ceil(n / to) * to;

/** The last number of a buffer, a pipeline or a list of steps, of all Programs in this process. */
let lastNumber = 0;

interface Numbers {
  /** The Program's buffers (0 for scratch and for empty ones), the arena (or 0), the uniform buffer. */
  readonly buffers: readonly number[];
  readonly firstPipeline: number;
  readonly steps: number;
}

/** Frees the buffers of a memory that was collected. */
const freed = new FinalizationRegistry<{ device: WebGPUDevice; buffers: readonly number[] }>(
  ({ device, buffers }) => {
    if (device.lost) return;
    for (const buffer of buffers) device.destroyBuffer(buffer);
  },
);

/** Frees the pipelines and steps of a Program that was collected. */
const released = new FinalizationRegistry<{ device: WebGPUDevice; pipelines: number } & Numbers>(
  ({ device, firstPipeline, pipelines, steps }) => {
    if (device.lost) return;
    device.drop(steps);
    for (let i = 0; i < pipelines; i++) device.dropPipeline(firstPipeline + i);
  },
);

/** Memory for Programs on a GPU: parameters and states of one name are shared, and so is the arena. It is zero at first. */
export class GpuMemory {
  readonly #device: WebGPUDevice;
  readonly #buffers = new Map<Program, readonly number[]>();
  readonly #values = new Map<string, { readonly spec: BufferSpec; readonly buffer: number }>();

  private constructor(device: WebGPUDevice) {
    this.#device = device;
  }

  /** Rejects with ProgramError where the adapter lacks something that the kernels need, OutOfMemoryError. */
  static async create(programs: readonly Program[], device: WebGPUDevice): Promise<GpuMemory> {
    for (const program of programs) checkLimits(program, device);
    const memory = new GpuMemory(device);
    const made: Promise<boolean>[] = [];
    const numbers: number[] = [];
    let total = 0;
    const take = (nbytes: number): number => {
      if (nbytes === 0) return 0;
      const number = ++lastNumber;
      numbers.push(number);
      total += nbytes;
      const room = device.createBuffer(number, roundUp(nbytes, ALIGN));
      if (room !== undefined) made.push(room);
      return number;
    };
    const arena = take(programs.reduce((most, program) => Math.max(most, program.arena), 0));
    for (const program of programs) {
      const buffers = program.buffers.map((spec) => {
        if (spec.role === "scratch") return 0;
        const known = isValue(spec) ? memory.#values.get(spec.name)?.buffer : undefined;
        const buffer = known ?? take(bytesOf(spec));
        if (isValue(spec)) memory.#values.set(spec.name, { spec, buffer });
        return buffer;
      });
      const uniform = take(ALIGN * Math.max(uniformParts(program).size, 1));
      memory.#buffers.set(program, [...buffers, arena, uniform]);
    }
    freed.register(memory, { device, buffers: numbers });
    if ((await Promise.all(made)).includes(false)) {
      throw new OutOfMemoryError(`load: no room for ${total} bytes on the GPU: load smaller models`);
    }
    return memory;
  }

  /** The numbers of the buffers of one of its Programs, of the arena (or 0), and of the uniform buffer. */
  buffersOf(program: Program): readonly number[] {
    return this.#buffers.get(program) ?? [];
  }

  /** Fill the bytes of a parameter or state from byte `offset` on, a multiple of 4. */
  write(name: string, data: ArrayBufferView, offset = 0): void {
    const { spec, buffer } = this.#value(name);
    writePart(this.#device, spec, buffer, name, data, offset);
  }

  /** A copy of a parameter or state, after all earlier calls. */
  read(name: string): Promise<TensorData> {
    const { spec, buffer } = this.#value(name);
    return readStart(this.#device, spec, buffer, spec.size);
  }

  #value(name: string): { readonly spec: BufferSpec; readonly buffer: number } {
    return valueNamed(this.#values, name);
  }
}

/** Write bytes to a buffer from byte `offset` on. Later elements in the last word are overwritten. */
function writePart(
  device: WebGPUDevice,
  spec: BufferSpec,
  buffer: number,
  name: string | number,
  data: ArrayBufferView,
  offset: number,
): void {
  checkPart(spec, name, data, offset);
  if (data.byteLength === 0) return;
  const whole = new Uint8Array(roundUp(data.byteLength, WORD));
  whole.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  device.write(buffer, offset, whole);
}

/** A copy of the first `count` elements of a buffer. */
async function readStart(
  device: WebGPUDevice,
  spec: BufferSpec,
  buffer: number,
  count: number,
): Promise<TensorData> {
  const array = arrayOf(spec);
  const length = Math.min(count, spec.size);
  if (length === 0) return new array();
  const bytes = await device.read(buffer, 0, roundUp(length * array.BYTES_PER_ELEMENT, WORD));
  return new array(bytes.buffer as ArrayBuffer, bytes.byteOffset, length);
}

export class GpuProgram {
  /** Threads of the host; the GPU has its own. */
  readonly threads = 1;
  readonly #device: WebGPUDevice;
  readonly #numbers: Numbers;
  readonly #parts: ReadonlyMap<string, number>;
  readonly #table: Uint32Array;
  /** The Variables of the last run, as text; the uniform buffer and the grids are those of that run. "" before it. */
  #values = "";

  private constructor(
    readonly program: Program,
    device: WebGPUDevice,
    /** Its buffers live as long as this. */
    readonly memory: GpuMemory,
    numbers: Numbers,
  ) {
    this.#device = device;
    this.#numbers = numbers;
    this.#parts = uniformParts(program);
    this.#table = Uint32Array.from(numbers.buffers);
    released.register(this, { device, pipelines: program.kernels.length, ...numbers });
  }

  /** Load a Program, whose buffers are in `memory`, to a device. Rejects with CompileError. */
  static async load(program: Program, device: WebGPUDevice, memory: GpuMemory): Promise<GpuProgram> {
    const numbers = {
      buffers: memory.buffersOf(program),
      firstPipeline: lastNumber + 1,
      steps: lastNumber + 1 + program.kernels.length,
    };
    lastNumber = numbers.steps;
    const loaded = new GpuProgram(program, device, memory, numbers);
    const sources = program.kernels.map(({ name, code, n_buffers }) => {
      return { name, text: new TextDecoder().decode(code), buffers: n_buffers };
    });
    await device.compiled(numbers.firstPipeline, sources);
    device.prepare(numbers.steps, loaded.#stepNumbers());
    return loaded;
  }

  /** Throws ProgramError unless `variables` has all of the Program's, in their bounds. */
  check(variables: Readonly<Record<string, number>>): void {
    checkVariables(this.program, variables);
  }

  /** Run every launch on the contents of the buffers, in one submit; `read` waits for it. Throws ProgramError, DeviceError. */
  execute(variables: Readonly<Record<string, number>> = {}): void {
    this.check(variables);
    const values = `=${this.program.variables.map(({ name }) => variables[name]).join()}`;
    if (values === this.#values) {
      this.#device.submit(this.#numbers.steps);
      return;
    }
    this.#values = ""; // until all is written
    const uniform = this.#numbers.buffers.at(-1) ?? 0;
    this.#device.write(uniform, 0, this.#uniform(variables));
    const grids = this.program.launches.flatMap(({ grid }) =>
      (grid ?? []).map((n) => gridSize(n, variables)),
    );
    this.#device.submit(this.#numbers.steps, this.#table, Uint32Array.from(grids));
    this.#values = values;
  }

  /** Fill buffer number `buffer` (a parameter or state, say) with the bytes of `data`. */
  write(buffer: number, data: ArrayBufferView): void {
    checkWhole(this.#spec(buffer), buffer, data);
    this.writePart(buffer, data);
  }

  /** Fill the bytes of buffer number `buffer` from byte `offset` on, a multiple of 4. */
  writePart(buffer: number, data: ArrayBufferView, offset = 0): void {
    writePart(this.#device, this.#spec(buffer), this.#numbers.buffers[buffer] ?? 0, buffer, data, offset);
  }

  /** A copy of buffer number `buffer`, or of its first `count` elements, after all earlier calls. */
  async read(buffer: number, count?: number): Promise<TensorData> {
    const spec = this.#spec(buffer);
    return readStart(this.#device, spec, this.#numbers.buffers[buffer] ?? 0, count ?? spec.size);
  }

  #spec(number: number): BufferSpec {
    return bufferOf(this.program, number);
  }

  /** The launches as `readSteps` takes them. */
  #stepNumbers(): Uint32Array {
    const { buffers, kernels, launches } = this.program;
    const [arena, uniform] = [buffers.length, buffers.length + 1];
    const words = launches.flatMap(({ kernel, bindings }, i) => {
      const ranges = bindings.flatMap(({ buffer, offset }) => {
        const spec = this.#spec(buffer);
        const nbytes = bindingBytes(spec, offset);
        return spec.role === "scratch" ? [arena, spec.offset + offset, nbytes] : [buffer, offset, nbytes];
      });
      const part = this.#parts.get(kernels[kernel]?.variables.join() ?? "") ?? 0;
      const head = [DISPATCH, this.#numbers.firstPipeline + kernel, 3 * i, bindings.length + 1];
      return [...head, ...ranges, uniform, part, ALIGN];
    });
    return Uint32Array.from(words);
  }

  #uniform(variables: Readonly<Record<string, number>>): Uint8Array<ArrayBuffer> {
    const words = new Int32Array((ALIGN / 4) * Math.max(this.#parts.size, 1));
    for (const { variables: names } of this.program.kernels) {
      const start = (this.#parts.get(names.join()) ?? 0) / 4;
      words.set([...CONSTANTS, ...names.map((name) => variables[name] ?? 0)], start);
    }
    return new Uint8Array(words.buffer);
  }
}

const bindingBytes = (spec: BufferSpec, offset: number): number =>
  roundUp(Math.max(bytesOf(spec) - offset, 1), 16);

/** The byte offset in the uniform buffer of each list of Variables that kernels have. */
function uniformParts({ kernels }: Program): ReadonlyMap<string, number> {
  const lists = new Set(kernels.map(({ variables }) => variables.join()));
  return new Map([...lists].map((names, i) => [names, i * ALIGN]));
}

/** Throws ProgramError or OutOfMemoryError for a Program that the adapter cannot run. */
function checkLimits(program: Program, { adapter }: WebGPUDevice): void {
  const advice = "export the step on an adapter that has no more than this one";
  for (const kernel of program.kernels) {
    checkKernel(kernel, adapter, advice);
    const invocations = (kernel.workgroup ?? [1]).reduce((a, b) => a * b, 1);
    const uniform = 4 * (CONSTANTS.length + kernel.variables.length);
    for (const [subject, limit, count] of [
      ["buffers", adapter.storageBuffers, kernel.n_buffers],
      ["invocations in a workgroup", adapter.invocations, invocations],
      ["bytes of Variables", ALIGN, uniform],
    ] as const) {
      if (count > limit) {
        throw new ProgramError(
          `load: kernel ${kernel.name}: expected at most ${limit} ${subject}, got ${count}: ${advice}`,
        );
      }
    }
  }
  for (const { bindings } of program.launches) {
    for (const { buffer, offset } of bindings) {
      const spec = program.buffers[buffer];
      if (spec === undefined) continue; // cannot happen: `readProgram` checked it
      const nbytes = bindingBytes(spec, offset);
      if (nbytes > adapter.bindingBytes) {
        throw new OutOfMemoryError(
          `load: expected buffers of at most ${adapter.bindingBytes} bytes, which is what ${adapter.name} binds, ` +
            `got ${nbytes}: load smaller models`,
        );
      }
      const place = offset + (spec.role === "scratch" ? spec.offset : 0);
      if (place % ALIGN !== 0) {
        throw new ProgramError(`load: expected bindings at multiples of ${ALIGN} bytes, got ${place}`);
      }
    }
  }
}

function checkKernel(kernel: KernelSpec, adapter: AdapterDescription, advice: string): void {
  const { name, language, code, subgroup } = kernel;
  if (language !== "wgsl") {
    throw new ProgramError(`load: kernel ${name}: expected wgsl, got ${language}: ${advice}`);
  }
  const portable = `${advice}, or with WEBGPU_F16=0 and WEBGPU_SUBGROUPS=0`;
  const hasF16 = new TextDecoder().decode(code.subarray(0, ENABLE_F16.length)) === ENABLE_F16;
  if (hasF16 && !adapter.features.includes("shader-f16")) {
    throw new ProgramError(
      `load: kernel ${name}: expected an adapter with the feature shader-f16, got ${adapter.name} without: ${portable}`,
    );
  }
  if (subgroup !== 0 && subgroup !== adapter.subgroup) {
    throw new ProgramError(
      `load: kernel ${name}: expected subgroups of ${subgroup} invocations, got ${adapter.name}, ` +
        `whose are of ${adapter.subgroup || "no one size"}: ${portable}`,
    );
  }
}
