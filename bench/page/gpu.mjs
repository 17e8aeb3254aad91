/**
 * What a page does with its GPUs, whichever library asks for it: counts, and waiting until all is done. Imported before
 * any library.
 */

const queues = new Set();
const [texts, made] = [new WeakMap(), new Set()];
let submitted = 0; // when the last submit returned
let recording; // when the first commands since `began` began to be recorded

/** `...Again`: what was made although it was there, a pipeline of the same text, a group of the same ranges. */
const counts = {
  submits: 0,
  pipelines: 0,
  pipelinesAgain: 0,
  bindGroups: 0,
  bindGroupsAgain: 0,
};

/** What went wrong without any library's asking. */
const errors = [];

const numbers = new WeakMap();
let last = 0;

function numberOf(object) {
  if (!numbers.has(object)) numbers.set(object, ++last);
  return numbers.get(object);
}

function count(what, key) {
  counts[what]++;
  if (made.has(key)) counts[`${what}Again`]++;
  made.add(key);
}

/** Have `seen(this, result, ...arguments)` called after each call of a method. */
function watch(type, method, seen) {
  const original = type?.prototype[method];
  if (original === undefined) return;
  type.prototype[method] = function (...args) {
    const result = original.apply(this, args);
    seen(this, result, ...args);
    return result;
  };
}

function pipeline(device, _, { compute }) {
  const text = texts.get(compute.module) ?? "";
  count(
    "pipelines",
    `${numberOf(device)} ${compute.entryPoint} ${JSON.stringify(compute.constants ?? {})} ${text}`,
  );
}

function bindGroup(device, _, { layout, entries }) {
  const ranges = entries.map(({ binding, resource }) => {
    const { buffer = resource, offset = 0, size = "" } = resource;
    return `${binding}:${numberOf(buffer)}+${offset}:${size}`;
  });
  count("bindGroups", `${numberOf(layout)} ${ranges.join(" ")}`);
}

const { GPUAdapter, GPUQueue, GPUDevice } = globalThis;
watch(GPUAdapter, "requestDevice", async (_, promise) => {
  const device = await promise;
  device.addEventListener("uncapturederror", ({ error }) => errors.push(error.message));
  device.lost.then(({ reason, message }) => {
    if (reason !== "destroyed") errors.push(`the device was lost: ${message}`); // else by who asked for it
  });
});
watch(GPUDevice, "createCommandEncoder", () => (recording ??= performance.now()));
watch(GPUQueue, "submit", (queue) => {
  submitted = performance.now();
  queues.add(queue);
  counts.submits++;
});
watch(GPUDevice, "createShaderModule", (_, module, { code }) => texts.set(module, code));
watch(GPUDevice, "createComputePipeline", pipeline);
watch(GPUDevice, "createComputePipelineAsync", pipeline);
watch(GPUDevice, "createBindGroup", bindGroup);

/** Resolves when all that was submitted so far is done; rejects with the first thing that has gone wrong. */
export async function finished() {
  await Promise.all([...queues].map((queue) => queue.onSubmittedWorkDone()));
  const [first] = errors.splice(0);
  if (first !== undefined) throw new Error(first);
}

/** What was done since the last call. */
export function counted() {
  const found = { ...counts };
  for (const name of Object.keys(counts)) counts[name] = 0;
  return found;
}

/** A step begins now; what it gives says how long, in milliseconds, until its last submit returned, and how much of that
 * went by since the first of its commands was recorded. */
export function began() {
  recording = undefined;
  const begin = performance.now();
  return () => ({ handed: submitted - begin, recorded: submitted - (recording ?? submitted) });
}
