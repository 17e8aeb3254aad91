/** A program that prints the features of its engine, for tests that start it with flags. */

import { setFlagsFromString } from "node:v8";

import { detectFeatures } from "../src/features";

setFlagsFromString("--experimental-wasm-relaxed-simd"); // which Node 20 needs
console.log(detectFeatures().join(" "));
