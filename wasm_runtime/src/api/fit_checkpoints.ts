/** The folder of a run's checkpoints: `polygrad.training.Checkpoints`, of which Python says when and this side writes. */

import { ArgumentError } from "./generated/errors";
import { checkOptions, type OptionNames } from "./options";
import type { Folder, Host } from "./sources";

/** Checkpoints in a folder. */
export interface CheckpointOptions {
  /** In Node the path of a folder; in a page that of one in the private file system of the origin (OPFS). */
  readonly folder: string;
  /** After how many epochs, or steps, there is one: 1 unless given. */
  readonly every?: number;
  /** Of `every`: "epoch" unless given. */
  readonly unit?: "epoch" | "step";
  /** How many files stay in the folder, the last ones: 3 unless given. */
  readonly keep?: number;
}

const OPTIONS: OptionNames<CheckpointOptions> = { folder: true, every: true, unit: true, keep: true };

const NAME = /^step-(\d{9})\.safetensors$/;
/** What a host's `write` leaves where the process ended meanwhile. */
const UNFINISHED = /^step-\d{9}\.safetensors\..+$/;

/** The checkpoints in a folder. */
export class CheckpointFolder {
  readonly #folder: Folder;
  readonly #path: string;
  readonly #keep: number;
  /** What Python is told. */
  readonly options: Readonly<Record<string, unknown>>;

  /** Throws ArgumentError. */
  constructor(host: Host, options: CheckpointOptions) {
    checkOptions("fit: checkpoints", options, OPTIONS);
    const { folder, every = 1, unit = "epoch", keep = 3 } = options;
    if (typeof folder !== "string" || folder === "") {
      throw new ArgumentError(`fit: checkpoints: folder: expected a path, got ${JSON.stringify(folder)}`);
    }
    if (host.folder === undefined) throw new ArgumentError("fit: checkpoints: this host has no folders");
    this.#folder = host.folder(folder);
    this.#path = folder;
    this.#keep = keep;
    this.options = { every, unit, keep };
  }

  /** The newest checkpoint; undefined where there is none. */
  async newest(): Promise<Uint8Array<ArrayBuffer> | undefined> {
    const name = (await this.#names()).at(-1);
    return name === undefined ? undefined : this.#folder.read(name);
  }

  /**
   * Remove files that an earlier run could not finish. Rejects with ArgumentError for a folder with checkpoints of later
   * steps: a run at `step` would not be its newest.
   */
  async begin(step: number): Promise<void> {
    for (const left of await this.#folder.list()) {
      if (UNFINISHED.test(left)) await this.#folder.remove(left);
    }
    const name = (await this.#names()).at(-1);
    if (name === undefined || Number(NAME.exec(name)?.[1]) <= step) return;
    throw new ArgumentError(
      `fit: checkpoints: expected a folder without checkpoints of steps after ${step}, got ${this.#path} with ${name}: ` +
        "go on from there by resume: true, or choose another folder",
    );
  }

  /** Write a checkpoint; of older ones, the last keep - 1 stay. */
  async write(name: string, bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    await this.#folder.write(name, bytes);
    for (const old of (await this.#names()).slice(0, -this.#keep)) await this.#folder.remove(old);
  }

  async #names(): Promise<string[]> {
    return (await this.#folder.list()).filter((name) => NAME.test(name)).sort();
  }
}
