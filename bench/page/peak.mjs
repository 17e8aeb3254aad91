/** How many multiply-adds this engine can do: the loop of `bench/peak.py`, nothing but registers. */

export async function peak() {
  const { instance } = await WebAssembly.instantiateStreaming(fetch("/models/peak.wasm"));
  return { step: () => void instance.exports.peak(100_000), check: () => [instance.exports.peak(3)] };
}
