/**
 * A program that runs a dot product of relaxed SIMD before and after its host can repair those, and prints as JSON what came,
 * and whether the engine is wrong after each step.
 */

import { setFlagsFromString } from "node:v8";

import { hasWrongDots, repairDotsBy } from "../src/features";
import { WasmHost } from "../src/host";
import { ADD_KERNEL, kernelModule } from "./modules";

setFlagsFromString("--experimental-wasm-relaxed-simd"); // which Node 20 needs

const splat = (byte: number): number[] => [0x41, byte, 0xfd, 15];
const dot = [...splat(3), ...splat(5), 0x41, 7, 0xfd, 17, 0xfd, 0x93, 2]; // 4 * 3 * 5 + 7
const code = kernelModule("dot", 1, [0x20, 0, ...dot, 0xfd, 27, 0, 0x36, 2, 0]);

const host = new WasmHost();

/** Whether modules without dot products change nothing, and the result of the one with them. */
function step(): unknown {
  const before = hasWrongDots();
  host.kernel("add", ADD_KERNEL);
  const isUnchanged = hasWrongDots() === before;
  try {
    const calls = host.launches([host.kernel("dot", code)], Uint32Array.of(0, 0, 1, 0, 0), 1);
    calls.bases[0] = 64;
    calls.run();
    return { isUnchanged, isWrong: hasWrongDots(), result: new Int32Array(host.memory.buffer, 64, 1)[0] };
  } catch (error) {
    return { isUnchanged, isWrong: hasWrongDots(), result: String(error) };
  }
}

const first = step();
repairDotsBy(() => {
  setFlagsFromString("--no-liftoff");
});
console.log(JSON.stringify([first, step()]));
