/**
 * What an operation costs from JavaScript, disposal included, and in Python: `node overhead.mjs ROUNDS` prints
 * `{operation: {python, javascript}}`, in microseconds, of the quickest of so many rounds of a thousand.
 */

import { create } from "../node/dist/main.js";

const ROUNDS = Number(process.argv[2]);
const pg = await create({ threads: 1 });
const { Tensor } = pg;

const COUNT = 1000;
const CASES = {
  add: ["a.add(b)", (a, b) => a.add(b)],
  neg: ["a.neg()", (a) => a.neg()],
  sum: ["a.sum(0, keepdim=True)", (a) => a.sum(0, { keepdim: true })],
  element: ["a[0]", (a) => a.at(0)],
  reshape: ["a.reshape([2, 1])", (a) => a.reshape([2, 1])],
};

await pg.python(`
import time
from polygrad import Tensor
a, b = Tensor([1.0, 2.0]).realize(), Tensor([3.0, 4.0]).realize()

def measure(source):
    run = eval(f"lambda a, b: {source}")
    start = time.perf_counter()
    for _ in range(${COUNT}):
        run(a, b)
    return (time.perf_counter() - start) / ${COUNT} * 1e6
`);
const [a, b] = [new Tensor([1, 2]).realize(), new Tensor([3, 4]).realize()];
const out = {};
for (const [name, [source, run]] of Object.entries(CASES)) {
  let [python, javascript] = [Infinity, Infinity];
  for (let i = 0; i < ROUNDS; i++) {
    python = Math.min(python, await pg.python(`measure("${source}")`));
    const start = performance.now();
    pg.scope(() => {
      for (let n = 0; n < COUNT; n++) run(a, b);
    });
    javascript = Math.min(javascript, ((performance.now() - start) / COUNT) * 1e3);
  }
  out[name] = { python, javascript };
}
console.log(JSON.stringify(out));
process.exit(0);
