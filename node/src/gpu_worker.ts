/** The worker that owns the GPU: carries out calls on a `WebGPUDevice` in order. See `gpu.ts`. */

import { workerData } from "node:worker_threads";

import { WebGPUDevice } from "../../wasm_runtime/src/webgpu/device";
import { gpuOfNode } from "./gpu_of_node";
import { ANSWERS, LOST, type Call, type Reply, type WorkerData } from "./gpu";

const { port, signal } = workerData as WorkerData;

let device: WebGPUDevice | undefined;

async function open(): Promise<unknown> {
  device = await WebGPUDevice.open(await gpuOfNode());
  void device?.whenLost.then(() => Atomics.store(signal, LOST, 1));
  return device?.adapter;
}

/** The result of a call, or a promise of it. */
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
