/**
 * `Model`: an exported step in memory, run by names, without Python. `polygrad/export/model.py` is the same in Python.
 *
 * Everything that reads or runs returns a promise, because a GPU answers later.
 */

import { dtypeOf, type TensorData } from "./arrays";
import { DeviceError, ProgramError } from "./errors";
import { elementsOf, resolve, resolved, type TensorInput, type TensorSpec, type TensorValue } from "./input";
import { readProgram, type Program, type Role } from "./program";
import { loadProgramLater } from "./runner";
import { readEntries, writeEntries, type Entry } from "./safetensors";
import type { ThreadPool } from "./thread_pool";
import type { WebGPUDevice } from "./webgpu/device";
import { GpuProgram } from "./webgpu/loaded";

/** What a model needs of a Program in memory. A read is answered after all earlier calls. */
interface Loaded {
  readonly program: Program;
  readonly threads: number;
  check(variables: Readonly<Record<string, number>>): void;
  execute(variables: Readonly<Record<string, number>>): void;
  write(buffer: number, data: ArrayBufferView): void;
  writeStart(buffer: number, data: ArrayBufferView): void;
  read(buffer: number, count: number): TensorData | Promise<TensorData>;
}

/** A host's threads and GPU. Each is requested when a model can use it. */
export interface ModelHost {
  readonly pool?: () => ThreadPool | undefined;
  /** The GPU; undefined where there is none. */
  readonly gpu?: () => Promise<WebGPUDevice | undefined>;
}

/** A tensor of the model, and the number of its buffer. */
interface Slot extends TensorSpec {
  readonly buffer: number;
}

/** A parameter or state of a model, such as a weight, or an optimizer's learning rate. */
export interface Parameter extends TensorSpec {
  readonly shape: readonly number[];
  /** A copy of what it holds now. */
  read(): Promise<TensorValue>;
  /** Set it to `value`. Rejects with ProgramError for another dtype or shape. */
  write(value: TensorInput): Promise<void>;
}

/** A promise of what `work` returns, or of its error. */
function promised<T>(work: () => T): Promise<T> {
  return new Promise((settle) => {
    settle(work());
  });
}

export class Model {
  /** What `run` takes. An element of a shape is a number, or the name of a Variable. */
  readonly inputs: readonly TensorSpec[];
  /** What `run` returns. */
  readonly outputs: readonly TensorSpec[];
  /** Parameters, and state such as an optimizer's, which the model keeps between runs. */
  readonly parameters: readonly Parameter[];
  readonly #loaded: Loaded;
  readonly #inputs: readonly Slot[];
  readonly #outputs: readonly Slot[];
  readonly #kept: readonly Slot[];

  /** Use `load` instead. Throws ProgramError when names are missing or `values` are not those of the Program. */
  constructor(loaded: Loaded, values: ReadonlyMap<string, Entry>) {
    this.#loaded = loaded;
    this.#inputs = slots(loaded.program, "input");
    this.#outputs = slots(loaded.program, "output");
    this.#kept = slots(loaded.program, "param", "state");
    this.inputs = this.#inputs.map(specOf);
    this.outputs = this.#outputs.map(specOf);
    this.parameters = this.#kept.map((slot) => this.#parameterOf(slot));
    this.#take(values);
  }

  /** The Program behind it. */
  get program(): Program {
    return this.#loaded.program;
  }

  /** How many threads a run would have now; workers that are still starting are not waited for. */
  get threads(): number {
    return this.#loaded.threads;
  }

  /**
   * Run once. `inputs` by name are typed arrays, `{ data, shape }` or nested arrays. A Variable is a number by its name;
   * it may be left out where it follows from the shape or the length of an input. Outputs by name are copies. State
   * keeps what is written to it. Rejects with ProgramError when something does not fit; then nothing has run.
   */
  async run(inputs: Readonly<Record<string, TensorInput>> = {}): Promise<Record<string, TensorValue>> {
    const variables = this.#variables(inputs);
    const given = this.#inputs.map((slot) => {
      return { slot, elements: elementsOf(slot, inputs[slot.name]) };
    });
    // Shapes first: more Variables follow from a shape than from a length.
    const shaped = given.filter(({ elements }) => elements.shape !== undefined);
    const flat = given.filter(({ elements }) => elements.shape === undefined);
    for (const { slot, elements } of [...shaped, ...flat]) resolve(slot, elements, variables);
    this.#loaded.check(variables);
    for (const { slot, elements } of given) this.#loaded.writeStart(slot.buffer, elements.data);
    this.#loaded.execute(variables);
    return Object.fromEntries(await this.#readAll(this.#outputs, variables));
  }

  /** The parameter or state called `name`. Throws ProgramError when there is none. */
  parameter(name: string): Parameter {
    const match = this.parameters.find((parameter) => parameter.name === name);
    if (match === undefined) {
      const names = this.#kept.map((slot) => slot.name).join(", ");
      throw new ProgramError(`parameter: expected one of ${names}, got ${name}`);
    }
    return match;
  }

  /** Parameters and state as the bytes of a safetensors file. */
  async save(): Promise<Uint8Array<ArrayBuffer>> {
    const entries = (await this.#readAll(this.#kept, {})).map(
      ([name, { data, shape, dtype }]): [string, Entry] => {
        const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
        return [name, { dtype, shape, data: bytes }];
      },
    );
    return writeEntries(new Map(entries));
  }

  /** Take parameters and state from what `save` made. Rejects with ProgramError, and then nothing has changed. */
  load(bytes: Uint8Array): Promise<void> {
    return promised(() => {
      this.#take(readEntries(bytes));
    });
  }

  #variables(inputs: Readonly<Record<string, TensorInput>>): Record<string, number> {
    const { variables } = this.program;
    const names = this.#inputs.map(({ name }) => name);
    const all = [...names, ...variables.map(({ name }) => name)];
    const given = Object.keys(inputs);
    if (given.some((name) => !all.includes(name)) || names.some((name) => !Object.hasOwn(inputs, name))) {
      throw new ProgramError(`run: expected the inputs ${all.join(", ")}, got ${given.join(", ") || "none"}`);
    }
    const named = variables.filter(({ name }) => Object.hasOwn(inputs, name));
    return Object.fromEntries(named.map(({ name }) => [name, inputs[name] as number]));
  }

  async #read(slot: Slot, variables: Readonly<Record<string, number>>): Promise<TensorValue> {
    const shape = resolved(slot, variables);
    const count = shape.reduce((a, b) => a * b, 1);
    return { data: await this.#loaded.read(slot.buffer, count), shape, dtype: slot.dtype };
  }

  /** Read slots. All reads start before the first is awaited, so no other call comes between them. */
  #readAll(
    slots: readonly Slot[],
    variables: Readonly<Record<string, number>>,
  ): Promise<[string, TensorValue][]> {
    return Promise.all(
      slots.map(async (slot): Promise<[string, TensorValue]> => [
        slot.name,
        await this.#read(slot, variables),
      ]),
    );
  }

  #parameterOf(slot: Slot): Parameter {
    return {
      name: slot.name,
      dtype: slot.dtype,
      shape: resolved(slot, {}),
      read: () => this.#read(slot, {}),
      write: (value) =>
        promised(() => {
          const elements = elementsOf(slot, value);
          resolve(slot, elements, {});
          this.#loaded.write(slot.buffer, elements.data);
        }),
    };
  }

  #take(values: ReadonlyMap<string, Entry>): void {
    const described = (x: { dtype: string; shape: readonly unknown[] } | undefined): string =>
      x === undefined ? "nothing" : `${x.dtype} [${x.shape.join(", ")}]`;
    const expectedSlots = new Map(this.#kept.map((slot) => [slot.name, slot]));
    for (const name of new Set([...expectedSlots.keys(), ...values.keys()])) {
      const [expected, got] = [described(expectedSlots.get(name)), described(values.get(name))];
      if (expected !== got) {
        throw new ProgramError(
          `values: ${name}: expected ${expected}, got ${got}: use those that were saved with this model`,
        );
      }
    }
    for (const [name, { data }] of values) this.#loaded.write(expectedSlots.get(name)?.buffer ?? -1, data);
  }
}

function specOf({ name, dtype, shape }: Slot): TensorSpec {
  return { name, dtype, shape };
}

/** The buffers with these roles. Throws ProgramError when one has no name. */
function slots(program: Program, ...roles: Role[]): Slot[] {
  return program.buffers.flatMap(({ role, name, dtype, shape }, buffer) => {
    if (!roles.includes(role)) return [];
    if (name === "" || shape === null) {
      throw new ProgramError(
        `load: expected every ${role} to have a name and a shape, got none for buffer ${buffer}: ` +
          "export the step with save()",
      );
    }
    return [{ name, dtype: dtypeOf(dtype, name), shape, buffer }];
  });
}

/** The exported step in `bytes`. Rejects as `load` does. */
export async function loadModel(bytes: Uint8Array, host: ModelHost = {}): Promise<Model> {
  const program = readProgram(bytes);
  const values = program.values.length > 0 ? readEntries(program.values) : new Map<string, Entry>();
  return new Model(await loaded(program, host), values);
}

async function loaded(program: Program, { pool, gpu }: ModelHost): Promise<Loaded> {
  if (program.device !== "WEBGPU") {
    return loadProgramLater(program, program.threads > 1 && program.shared_memory ? pool?.() : undefined);
  }
  const device = await gpu?.();
  if (device === undefined) {
    throw new DeviceError(
      "load: expected a GPU for a model that was exported on WEBGPU, got none: use a browser with WebGPU, on a page " +
        "served by https or from localhost; in Node, npm install webgpu and a driver; or export the model on WASM",
    );
  }
  return GpuProgram.load(program, device);
}
