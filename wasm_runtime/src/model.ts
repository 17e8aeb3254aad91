/**
 * `Model`: an exported step in memory, run by names, without Python. `polygrad/export/model.py` is the same in Python.
 *
 * Everything that reads or runs is awaitable, also where the work is done at once: a GPU's is not.
 */

import { dtypeOf } from "./arrays";
import { ProgramError } from "./errors";
import { elementsOf, resolve, resolved, type TensorInput, type TensorSpec, type TensorValue } from "./input";
import { readProgram, type Program, type Role } from "./program";
import { loadProgramLater, type LoadedProgram } from "./runner";
import { readEntries, writeEntries, type Entry } from "./safetensors";
import type { ThreadPool } from "./thread_pool";

/** A tensor of the model, and the number of its buffer. */
interface Slot extends TensorSpec {
  readonly buffer: number;
}

/** A parameter or state of a model, such as a weight, or an optimizer's learning rate. */
export interface Parameter extends TensorSpec {
  readonly shape: readonly number[];
  /** A copy of what it holds now. */
  read(): Promise<TensorValue>;
  /** Let it be `value`. Rejects with ProgramError when dtype or shape are others. */
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
  /** What the model holds between runs, by name: parameters, and state such as an optimizer's. */
  readonly parameters: readonly Parameter[];
  readonly #loaded: LoadedProgram;
  readonly #inputs: readonly Slot[];
  readonly #outputs: readonly Slot[];
  readonly #kept: readonly Slot[];

  /** Use `load` instead. Throws ProgramError when names are missing or `values` are not those of the Program. */
  constructor(loaded: LoadedProgram, values: ReadonlyMap<string, Entry>) {
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
   * Run once. `inputs` by name: typed arrays, `{ data, shape }` or nested arrays; a Variable is a number by its name,
   * unless the shape or the length of an input tells it. The outputs by name are copies. What is written to
   * state stays. Rejects with ProgramError when something does not fit, and then nothing has run.
   */
  run(inputs: Readonly<Record<string, TensorInput>> = {}): Promise<Record<string, TensorValue>> {
    return promised(() => {
      const variables = this.#variables(inputs);
      const given = this.#inputs.map((slot) => {
        return { slot, elements: elementsOf(slot, inputs[slot.name]) };
      });
      // Shapes tell more about Variables than lengths do.
      const known = given.filter(({ elements }) => elements.shape !== undefined);
      const flat = given.filter(({ elements }) => elements.shape === undefined);
      for (const { slot, elements } of [...known, ...flat]) resolve(slot, elements, variables);
      this.#loaded.check(variables);
      for (const { slot, elements } of given) this.#loaded.writeStart(slot.buffer, elements.data);
      this.#loaded.execute(variables);
      return Object.fromEntries(this.#outputs.map((slot) => [slot.name, this.#read(slot, variables)]));
    });
  }

  /** The parameter or state called `name`. Throws ProgramError when there is none. */
  parameter(name: string): Parameter {
    const found = this.parameters.find((parameter) => parameter.name === name);
    if (found === undefined) {
      const names = this.#kept.map((slot) => slot.name).join(", ");
      throw new ProgramError(`parameter: expected one of ${names}, got ${name}`);
    }
    return found;
  }

  /** Parameters and state as the bytes of a safetensors file. */
  save(): Promise<Uint8Array<ArrayBuffer>> {
    return promised(() => {
      const entries = this.#kept.map((slot): [string, Entry] => {
        const { data, shape, dtype } = this.#read(slot, {});
        return [slot.name, { dtype, shape, data: new Uint8Array(data.buffer) }];
      });
      return writeEntries(new Map(entries));
    });
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

  #read(slot: Slot, variables: Readonly<Record<string, number>>): TensorValue {
    const shape = resolved(slot, variables);
    const count = shape.reduce((a, b) => a * b, 1);
    return { data: this.#loaded.read(slot.buffer, count), shape, dtype: slot.dtype };
  }

  #parameterOf(slot: Slot): Parameter {
    return {
      name: slot.name,
      dtype: slot.dtype,
      shape: resolved(slot, {}),
      read: () => promised(() => this.#read(slot, {})),
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
    const wanted = new Map(this.#kept.map((slot) => [slot.name, slot]));
    for (const name of new Set([...wanted.keys(), ...values.keys()])) {
      const [expected, got] = [described(wanted.get(name)), described(values.get(name))];
      if (expected !== got) {
        throw new ProgramError(
          `values: ${name}: expected ${expected}, got ${got}: use those that were saved with this model`,
        );
      }
    }
    for (const [name, { data }] of values) this.#loaded.write(wanted.get(name)?.buffer ?? -1, data);
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

/** The exported step in `bytes`. `poolFor` is asked for threads where it can use some. Rejects as `load` does. */
export async function loadModel(
  bytes: Uint8Array,
  poolFor: () => ThreadPool | undefined = () => undefined,
): Promise<Model> {
  const program = readProgram(bytes);
  const values = program.values.length > 0 ? readEntries(program.values) : new Map<string, Entry>();
  const pool = program.threads > 1 && program.shared_memory ? poolFor() : undefined;
  return new Model(await loadProgramLater(program, pool), values);
}
