/**
 * `Model`: an exported step in memory, run by names, without Python. `polygrad/export/model.py` is the same in Python.
 *
 * Everything that reads or runs returns a promise, because a GPU answers later.
 */

import { dtypeOf } from "./arrays";
import { ProgramError } from "./errors";
import { STEP } from "./files";
import { elementsOf, resolve, resolved, type TensorInput, type TensorSpec, type TensorValue } from "./input";
import { openModel, type Loaded, type ModelHost } from "./loading";
import type { Program, Role } from "./program";
import { readEntries, writeEntries, type Entry } from "./safetensors";
import { checkValues } from "./values";

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

  /** Use `load` instead. Throws ProgramError when names are missing. */
  constructor(loaded: Loaded) {
    this.#loaded = loaded;
    this.#inputs = slots(loaded.program, "input");
    this.#outputs = slots(loaded.program, "output");
    this.#kept = slots(loaded.program, "param", "state");
    this.inputs = this.#inputs.map(specOf);
    this.outputs = this.#outputs.map(specOf);
    this.parameters = this.#kept.map((slot) => this.#parameterOf(slot));
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
    for (const { slot, elements } of given) this.#loaded.writePart(slot.buffer, elements.data);
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
    checkValues(new Map(this.#kept.map((slot) => [slot.name, slot])), values);
    for (const { name, buffer } of this.#kept) {
      const entry = values.get(name);
      if (entry !== undefined) this.#loaded.write(buffer, entry.data);
    }
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

/** The exported step in a file, which may arrive in pieces. Rejects as `load` does. */
export async function loadModel(
  source: Uint8Array | AsyncIterable<Uint8Array>,
  host: ModelHost = {},
): Promise<Model> {
  const { programs } = await openModel(source, STEP, host);
  return new Model(await programs.get(STEP));
}
