/** Loads an exported model, runs it once, and leaves in `result` what came of it, how long that took, and submits. */

let submits = 0;
if (globalThis.GPUQueue) {
  const { submit } = globalThis.GPUQueue.prototype;
  globalThis.GPUQueue.prototype.submit = function (commands) {
    submits++;
    submit.call(this, commands);
  };
}

const started = performance.now();
const { load } = await import("/dist/polygrad-runtime.mjs");
const progress = [];
const model = await load("model.pgrd", { onProgress: ({ loaded }) => progress.push(loaded) });
const loaded = performance.now() - started;
const x = Float32Array.from({ length: 2 * 20 }, (_, i) => (i % 7) / 7);
const { logits } = await model.run({ x });
const milliseconds = performance.now() - started;
const refused = await load("/nowhere.pgrd").catch((error) => [error.name, error.message]);
window.result = {
  logits: [...logits.data],
  shape: logits.shape,
  progress,
  loaded,
  milliseconds,
  refused,
  isolated: window.crossOriginIsolated,
  submits,
};
