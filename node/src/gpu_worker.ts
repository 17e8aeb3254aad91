/** The worker that owns the GPU: carries out calls on a `WebGPUDevice` in order. See `gpu.ts`. */

import { workerData } from "node:worker_threads";

import { WebGPUDevice } from "../../wasm_runtime/src/webgpu/device";
import { ANSWERS, LOST, type Call, type Reply, type WorkerData } from "./gpu";

const { port, signal } = workerData as WorkerData;

let device: WebGPUDevice | undefined;
/** What the package gave: its process ends badly if this is collected. */
let gpu: GPU | undefined;

async function open(): Promise<unknown> {
  let create: (flags: string[]) => GPU;
  try {
    ({ create } = (await import("webgpu")) as { create: typeof create });
  } catch {
    return undefined; // an optional package
  }
  gpu = create([]);
  device = await WebGPUDevice.open(gpu);
  void device?.whenLost.then(() => Atomics.store(signal, LOST, 1));
  return device?.adapter;
}

/** What a call gives; a promise of it where it takes time. */
function carryOut({ method, args }: Call): unknown {
  if (method === "open") return open();
  const members = device as unknown as Readonly<Record<string, unknown>> | undefined;
  const member = members?.[method];
  return typeof member === "function" ? (member.apply(device, args) as unknown) : member;
}

async function answer(call: Call): Promise<void> {
  let reply: Reply;
  try {
    reply = { value: await carryOut(call) };
  } catch (error) {
    const { name, message } = error as Error;
    reply = { error: { name, message } };
  }
  if (!call.asked) return;
  port.postMessage(reply);
  Atomics.add(signal, ANSWERS, 1);
  Atomics.notify(signal, ANSWERS);
}

port.on("message", (call: Call) => {
  void answer(call);
});
