/**
 * Names of the tables in the guide for users of other libraries that do not exist:
 * `node names.mjs polygrad|tfjs|jax-js < EXPRESSIONS` prints them. Expressions are a JSON array of code, such as
 * `x.matmul(y)`; `x` is a tensor, and a name without an object is a function of the library.
 */

import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const peers = new URL("../../bench/node_modules/", import.meta.url);

/** What the words before a dot stand for. `""`: what has the functions. */
const LIBRARIES = {
  /** The packed package of the working folder. */
  async polygrad() {
    const { create } = await import(import.meta.resolve("polygrad", pathToFileURL(`${process.cwd()}/`)));
    const pg = await create();
    const model = new pg.nn.Linear(1, 1);
    const optimizer = new pg.optim.SGD([model.weight], { lr: 0.1 });
    const x = pg.Tensor.ones(1, 1);
    const step = pg.compileStep((model, x) => model.forward(x).sum(), model, optimizer, x);
    return { ...pg, "": { ...pg, create }, x, optimizer, step, model };
  },

  async tfjs() {
    const { default: tf } = await import(new URL("@tensorflow/tfjs/dist/tf.node.js", peers));
    return {
      "": {},
      tf,
      x: tf.tensor([1]),
      optimizer: tf.Optimizer.prototype,
      model: tf.LayersModel.prototype,
      dataset: tf.data.Dataset.prototype,
    };
  },

  async "jax-js"() {
    const jax = await import(new URL("@jax-js/jax/dist/index.js", peers));
    const { numpy: np, nn, lax, random, tree } = jax;
    return { "": jax, np, nn, lax, random, tree, x: jax.Array.prototype };
  },
};

/** Tensors by other names. */
const TENSORS = new Set(["x", "y", "q", "loss", "condition"]);

/** A dotted name: its parts, unless it is in a string or the name of an option. */
const NAME = /(?<![\w.])([A-Za-z_]\w*)((?:\.\w+)*)(?=(\()?)/g;

function missing(library, expression) {
  const found = [];
  for (const [, first, rest, called] of expression.replace(/"[^"]*"/g, '""').matchAll(NAME)) {
    const parts = rest.split(".").slice(1);
    const root = TENSORS.has(first) ? library.x : library[first];
    if (parts.length === 0) {
      if (called && first !== "new" && !(first in library[""])) found.push(first);
    } else if (root === undefined) {
      found.push(first + rest);
    } else {
      let value = root;
      for (const [i, part] of parts.entries()) {
        if (value === undefined || !(part in Object(value))) {
          found.push(first + rest);
          break;
        }
        if (i < parts.length - 1) value = value[part];
      }
    }
  }
  return found;
}

const [name] = process.argv.slice(2);
const library = await LIBRARIES[name]();
const expressions = JSON.parse(await text(process.stdin));
console.log(JSON.stringify(expressions.flatMap((expression) => missing(library, expression))));
process.exit(0); // a session's threads would keep Node alive
