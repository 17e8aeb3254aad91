/** How many multiply-adds this engine can do: the loop of `bench/peak.py`, nothing but registers. */

const ROUNDS = 100_000; // as `bench/peak.py` counts

export async function start() {
  const { instance } = await WebAssembly.instantiateStreaming(fetch("/models/peak.wasm"));
  const { peak } = instance.exports;
  return () => ({ step: () => void peak(ROUNDS), check: () => [peak(3)] });
}
