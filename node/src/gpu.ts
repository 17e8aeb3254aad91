/**
 * The GPU in Node: a `WebGPUDevice` in a worker. It has the same calls, but returns answers at once.
 *
 * This thread sleeps until the worker answers. So Python need not be suspended, which Node 20 and 22 cannot do.
 */

import { MessageChannel, receiveMessageOnPort, Worker, type MessagePort } from "node:worker_threads";

import * as errors from "../../wasm_runtime/src/errors";
import type {
  AdapterDescription,
  Counters,
  Source,
  WebGPUDevice,
} from "../../wasm_runtime/src/webgpu/device";

/** Words that both threads share. */
export const ANSWERS = 0;
export const LOST = 1;

/** A call of a method, with or without an answer. */
export interface Call {
  readonly method: "open" | keyof WebGPUDevice;
  readonly args: readonly unknown[];
  readonly asked: boolean;
}

export interface Reply {
  readonly value?: unknown;
  /** The error's class and message. */
  readonly error?: { readonly name: string; readonly message: string };
}

export interface WorkerData {
  readonly port: MessagePort;
  readonly signal: Int32Array;
}

/**
 * Sleep until a word is no longer `value`. A thread that wakes compares again: it may have been woken for an earlier
 * change, which it saw before it slept.
 */
export function sleepWhile(words: Int32Array, index: number, value: number): void {
  while (Atomics.load(words, index) === value) Atomics.wait(words, index, value);
}

export class GpuInWorker {
  readonly synchronous = true;
  readonly #port: MessagePort;
  readonly #signal = new Int32Array(new SharedArrayBuffer(8));
  readonly adapter: AdapterDescription;

  private constructor() {
    const { port1, port2 } = new MessageChannel();
    this.#port = port1;
    const workerData: WorkerData = { port: port2, signal: this.#signal };
    const worker = new Worker(new URL("./gpu_worker.js", import.meta.url), {
      workerData,
      transferList: [port2],
    });
    worker.unref();
    port1.unref();
    this.adapter = this.#ask("open") as AdapterDescription;
  }

  /** Open the best adapter; undefined where there is none, or no package `webgpu`. */
  static open(): GpuInWorker | undefined {
    const gpu = new GpuInWorker();
    return (gpu.adapter as AdapterDescription | undefined) && gpu;
  }

  get lost(): string {
    return Atomics.load(this.#signal, LOST) ? (this.#ask("lost") as string) : "";
  }

  get counters(): Counters {
    return this.#ask("counters") as Counters;
  }

  createBuffer(number: number, nbytes: number): boolean | undefined {
    return this.#ask("createBuffer", number, nbytes) as boolean | undefined;
  }

  destroyBuffer(number: number): void {
    this.#tell("destroyBuffer", number);
  }

  write(number: number, offset: number, bytes: Uint8Array<ArrayBuffer>): void {
    this.#check();
    this.#tell("write", number, offset, bytes);
  }

  read(number: number, offset: number, nbytes: number): Uint8Array {
    return this.#ask("read", number, offset, nbytes) as Uint8Array;
  }

  /** Throws CompileError. */
  compile(first: number, sources: readonly Source[]): void {
    this.#ask("compiled", first, sources);
  }

  dropPipeline(number: number): void {
    this.#tell("dropPipeline", number);
  }

  prepare(number: number, steps: Uint32Array): void {
    this.#tell("prepare", number, steps);
  }

  drop(number: number): void {
    this.#tell("drop", number);
  }

  submit(number: number, table?: Uint32Array, grids?: Uint32Array): void {
    this.#check();
    this.#tell("submit", number, table, grids);
  }

  measure(number: number, table: Uint32Array, grids: Uint32Array): number {
    return this.#ask("measure", number, table, grids) as number;
  }

  close(): void {
    this.#ask("close");
  }

  /** Throws the DeviceError of a lost device. */
  #check(): void {
    if (Atomics.load(this.#signal, LOST)) this.#ask("submit", 0);
  }

  #tell(method: Call["method"], ...args: unknown[]): void {
    const call: Call = { method, args, asked: false };
    this.#port.postMessage(call);
  }

  #ask(method: Call["method"], ...args: unknown[]): unknown {
    const call: Call = { method, args, asked: true };
    const before = Atomics.load(this.#signal, ANSWERS);
    this.#port.postMessage(call);
    sleepWhile(this.#signal, ANSWERS, before);
    const { value, error } = (receiveMessageOnPort(this.#port) as { message: Reply }).message;
    if (error === undefined) return value;
    const errorClass = (errors as Record<string, new (message: string) => Error>)[error.name];
    throw new (errorClass ?? errors.InternalError)(error.message);
  }
}
