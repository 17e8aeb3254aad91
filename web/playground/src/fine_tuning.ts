/** Fine-tuning of the chat's model in the session's worker: `fine_tuning.py` does the work. */

import type { ChatMessage, Polygrad } from "polygrad";

import program from "./fine_tuning.py";
import type { LearnedRecord } from "./learned_text";
import { POLY } from "./poly";

const ADAPTER_FILES = ["adapter_config.json", "adapter_model.safetensors"] as const;

/** Seconds of training between two looks at the page. */
const SLICE = 0.1;

export interface TuningSettings {
  readonly records: readonly LearnedRecord[];
  readonly rank: number;
  readonly steps: number;
  readonly rate: number;
}

/** The whole model as a file: what a call in `fine_tuning.py` makes. */
export const MODEL_FILES = { "poly-tuned.pgrd": "exported", "poly-tuned.zip": "archive" } as const;

/** What is trained. */
export interface TuningSizes {
  readonly weights: number;
  readonly trained: number;
}

let kept: Promise<readonly (readonly [name: string, bytes: ArrayBuffer])[]> | undefined;

async function fetchModel(): Promise<readonly (readonly [name: string, bytes: ArrayBuffer])[]> {
  try {
    const files = Object.entries(POLY).map(async ([name, address]) => {
      const response = await fetch(address);
      if (!response.ok) {
        throw new Error(`expected a file of the model at ${address.href}, got the status ${response.status}`);
      }
      return [name, await response.arrayBuffer()] as const;
    });
    return await Promise.all(files);
  } catch (error) {
    kept = undefined; // the next run tries again
    throw error;
  }
}

/** The files of the model by name, fetched once. What is handed over belongs to the worker: copies. */
async function modelFiles(): Promise<Record<string, Uint8Array<ArrayBuffer>>> {
  const files = await (kept ??= fetchModel());
  return Object.fromEntries(files.map(([name, bytes]) => [name, new Uint8Array(bytes.slice(0))]));
}

export class FineTuning {
  readonly sizes: TuningSizes;
  readonly #pg: Polygrad;

  private constructor(pg: Polygrad, sizes: TuningSizes) {
    this.#pg = pg;
    this.sizes = sizes;
  }

  /** Begin anew: the adapters of the run before are gone. */
  static async start(pg: Polygrad, settings: TuningSettings): Promise<FineTuning> {
    const values = { _playground_files: await modelFiles(), _playground_settings: settings };
    await pg.python(`from polygrad import hf\nawait hf.prepare()\n${program}`, values);
    const sizes = await pg.python("_playground_tune(_playground_files, _playground_settings)");
    const [weights, trained] = JSON.parse(sizes as string) as [number, number];
    return new FineTuning(pg, { weights, trained });
  }

  /** Train for a moment; the losses of its steps, none once all steps are done. */
  async advance(): Promise<readonly number[]> {
    return JSON.parse((await this.#pg.python(`_playground_tuning.advance(${SLICE})`)) as string) as number[];
  }

  /** What follows a prompt, before and with the adapters. */
  async answers(prompt: string | readonly ChatMessage[]): Promise<readonly [before: string, after: string]> {
    const call = "_playground_tuning.answers(_playground_prompt)";
    return JSON.parse((await this.#pg.python(call, { _playground_prompt: prompt })) as string) as [
      string,
      string,
    ];
  }

  /** The adapters in PEFT's files, by name. */
  async files(): Promise<Record<string, Uint8Array<ArrayBuffer>>> {
    const contents = ADAPTER_FILES.map(async (name) => {
      const bytes = await this.#pg.python(`_playground_tuning.adapter_files()["${name}"]`);
      return [name, bytes as Uint8Array<ArrayBuffer>] as const;
    });
    return Object.fromEntries(await Promise.all(contents));
  }

  /** The model with the adapters in its weights, as a file. */
  async model(name: keyof typeof MODEL_FILES): Promise<Uint8Array<ArrayBuffer>> {
    const bytes = await this.#pg.python(`_playground_tuning.${MODEL_FILES[name]}()`);
    return bytes as Uint8Array<ArrayBuffer>;
  }
}
