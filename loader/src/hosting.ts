/** A Python in a worker, from both ends: its start, its output, and a start that fails. */

import { WorkerTransport, type FromWorker, type ToWorker } from "../../wasm_runtime/src/api/client";
import { describe, errorFrom } from "../../wasm_runtime/src/api/errors";
import { PolygradError } from "../../wasm_runtime/src/api/generated/errors";
import { SessionServer } from "../../wasm_runtime/src/api/server";
import type { Connection, SessionInfo } from "../../wasm_runtime/src/api/session";
import { abortable } from "../../wasm_runtime/src/abort";
import type { OnProgress } from "../../wasm_runtime/src/progress";
import type { Started } from "./bridge";
import { SharedStopSwitch, Stopper } from "./stops";

/** A worker: what a page's Worker and Node's have in common. */
export interface WorkerPort {
  post(message: unknown, transfer: ArrayBuffer[]): void;
  listen(listener: (message: unknown) => void): void;
  /** Calls `listener` with the reason when the worker has ended. */
  failed(listener: (reason: string) => void): void;
  /** Is told whether an answer is awaited. */
  busy?(waiting: boolean): void;
  close(): void;
}

/** Receive what a worker sends beside answers. */
export interface Listeners {
  readonly stdout?: ((text: string) => void) | undefined;
  readonly stderr?: ((text: string) => void) | undefined;
  readonly onProgress?: OnProgress | undefined;
}

interface Start {
  readonly kind: "start";
  readonly options: unknown;
  /** The flag of a `Stopper`. */
  readonly flag: Int32Array | undefined;
}

type Reply =
  | FromWorker
  | { readonly kind: "started"; readonly info: SessionInfo }
  | { readonly kind: "kept" }
  | { readonly kind: "memory"; readonly memory: SharedArrayBuffer }
  | { readonly kind: "failed"; readonly error: string }
  | { readonly kind: "event"; readonly listener: keyof Listeners; readonly value: unknown };

/** Listeners in the worker: each forwards what it receives to the listener of its name in the page. */
export type Forwarded = { readonly [K in keyof Listeners]-?: NonNullable<Listeners[K]> };

/** What a Python in a worker has beside its options. */
export interface InWorker extends Forwarded {
  readonly stopper: Stopper | undefined;
}

/** The worker's end: handles each message. `start` starts Python with the options that were sent. */
export function serveSession(
  post: (message: unknown, transfer: ArrayBuffer[]) => void,
  start: (options: unknown, own: InWorker) => Promise<Started>,
): (message: unknown) => void {
  const reply = (message: Reply, transfer: ArrayBuffer[] = []): void => {
    post(message, transfer);
  };
  const forward = (listener: keyof Listeners) => (value: unknown) => {
    reply({ kind: "event", listener, value });
  };
  let server: SessionServer | undefined;
  const begin = async ({ options, flag }: Start): Promise<void> => {
    const tell = (memory: SharedArrayBuffer): void => {
      reply({ kind: "memory", memory });
    };
    try {
      const { bridge, info, kept } = await start(options, {
        stopper: flag && new Stopper(flag, tell),
        stdout: forward("stdout"),
        stderr: forward("stderr"),
        onProgress: forward("onProgress"),
      });
      server = new SessionServer(bridge, reply);
      reply({ kind: "started", info });
      await kept.catch(() => undefined); // the next start makes what this one could not store
      reply({ kind: "kept" });
    } catch (error) {
      reply({ kind: "failed", error: describe(error) });
    }
  };
  return (message) => {
    const received = message as Start | ToWorker;
    if (received.kind === "start") void begin(received);
    else server?.receive(received);
  };
}

/**
 * The other end: starts Python in the worker behind `port`. Rejects when the start fails; with the reason of `signal`, which
 * stops the worker.
 */
export function connectSession(
  port: WorkerPort,
  options: unknown,
  listeners: Listeners,
  signal?: AbortSignal,
): Promise<Connection> {
  return abortable(connect(port, options, listeners), signal, () => {
    port.close();
  });
}

function connect(port: WorkerPort, options: unknown, listeners: Listeners): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const receivers: ((message: FromWorker) => void)[] = [];
    // The worker also counts as busy until it has stored what later starts need.
    let [asked, kept] = [true, false];
    const tellBusy = (): void => port.busy?.(asked || !kept);
    const stopSwitch = SharedStopSwitch.create();
    const transport = new WorkerTransport({
      send: (message, transfer) => {
        port.post(message, transfer);
      },
      receive: (listener) => void receivers.push(listener),
      failed: (listener) => {
        port.failed(listener);
      },
      busy: (waiting) => {
        asked = waiting;
        tellBusy();
      },
      close: () => {
        port.close();
      },
      stopSwitch,
    });
    port.failed((reason) => {
      reject(new PolygradError(`polygrad: the worker failed: ${reason}`));
    });
    port.listen((message) => {
      const received = message as Reply;
      if (received.kind === "answer") for (const receive of receivers) receive(received);
      else if (received.kind === "event") {
        (listeners[received.listener] as ((value: unknown) => void) | undefined)?.(received.value);
      } else if (received.kind === "started") {
        asked = false;
        resolve({ transport, info: received.info });
      } else if (received.kind === "memory") {
        if (stopSwitch) stopSwitch.memory = received.memory;
      } else if (received.kind === "kept") {
        kept = true;
        tellBusy();
      } else {
        port.close();
        reject(errorFrom(received.error));
      }
    });
    port.post({ kind: "start", options, flag: stopSwitch?.flag }, []);
  });
}
