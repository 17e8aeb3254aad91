/** `node run_in_python.mjs MODEL X`: Python in Node runs an exported model on X, float32 in hexadecimal; prints its outputs. */

import { readFile } from "node:fs/promises";

import { loadPolygrad } from "../../node/dist/index.js";

const [path, x] = process.argv.slice(2);
const polygrad = await loadPolygrad({ threads: 1 }); // the model is for one
polygrad.pyodide.FS.writeFile("/model.pgrd", await readFile(path));
const outputs = polygrad.runPython(`
import json

from polygrad import Tensor
from polygrad.export import load

model = load("/model.pgrd")
(spec,) = model.inputs
x = Tensor(bytes.fromhex("${x}"), dtype=spec.dtype).reshape(spec.shape)
json.dumps({name: bytes(y.data().cast("B")).hex() for name, y in model.run({spec.name: x}).items()})
`);
console.log(outputs);
