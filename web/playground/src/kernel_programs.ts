/** The programs of the kernel inspector to choose from, and the expression in which a program ends. */

import type { Language } from "./messages";

const IN_PYTHON: Readonly<Record<string, string>> = {
  "matrix product": "a, b = Tensor.rand(256, 256), Tensor.rand(256, 256)\n\n(a @ b).relu()\n",
  softmax: "x = Tensor.rand(256, 1000)\n\nx.softmax(axis=1)\n",
  "layer normalisation": "x = Tensor.rand(64, 512)\n\nx.layernorm()\n",
  convolution:
    "image, weight = Tensor.rand(1, 8, 32, 32), Tensor.rand(16, 8, 3, 3)\n\nimage.conv2d(weight).relu()\n",
  attention: "q, k, v = (Tensor.rand(4, 64, 32) for _ in range(3))\n\nq.scaled_dot_product_attention(k, v)\n",
  "training step": `from polygrad import compile_step, nn

layers = [nn.Linear(64, 128), nn.Linear(128, 10)]
optimizer = nn.optim.Adam(nn.state.get_parameters(layers), lr=0.002)
x, y = Tensor.rand(64, 64), Tensor.randint(64, low=0, high=10)


def loss(layers, x, y):
    hidden = layers[0](x).relu()
    scores = layers[1](hidden)
    return scores.cross_entropy(y)


compile_step(loss, layers, optimizer, x, y)
`,
};

const START = `import { create } from "polygrad";
const { Tensor } = await create();

`;

const IN_JAVASCRIPT: Readonly<Record<string, string>> = {
  "matrix product": `${START}const [a, b] = [Tensor.rand(256, 256), Tensor.rand(256, 256)];

a.matmul(b).relu();
`,
  softmax: `${START}const x = Tensor.rand(256, 1000);

x.softmax(1);
`,
  convolution: `${START}const [image, weight] = [Tensor.rand(1, 8, 32, 32), Tensor.rand(16, 8, 3, 3)];

image.conv2d(weight).relu();
`,
  "training step": `import { create } from "polygrad";
const { Tensor, nn, optim, compileStep } = await create();

const model = [new nn.Linear(64, 128), new nn.Linear(128, 10)];
const optimizer = new optim.Adam(nn.state.getParameters(model), { lr: 0.002 });
const [x, y] = [Tensor.rand(64, 64), Tensor.randint(64, { low: 0, high: 10 })];

function loss([first, second], x, y) {
  const hidden = first.forward(x).relu();
  const scores = second.forward(hidden);
  return scores.crossEntropy(y);
}

compileStep(loss, model, optimizer, x, y);
`,
};

/** A program to choose; `file` is its name among all of them. */
export interface KernelProgram {
  readonly file: string;
  readonly title: string;
  readonly language: Language;
  readonly source: string;
}

function programsIn(
  language: Language,
  ending: string,
  sources: Readonly<Record<string, string>>,
): KernelProgram[] {
  return Object.entries(sources).map(([title, source]) => {
    return { file: `${title}.${ending}`, title, language, source };
  });
}

/** All programs, by the label of their group. */
export const KERNEL_PROGRAMS: Readonly<Record<string, readonly KernelProgram[]>> = {
  JavaScript: programsIn("javascript", "js", IN_JAVASCRIPT),
  Python: programsIn("python", "py", IN_PYTHON),
};

/** Nodes of the syntax whose insides run later. */
const LATER = /Function|Declaration$|^ClassExpression$/;

/** Where the expression begins and ends in which a program in JavaScript ends. Throws where there is none, or it waits. */
export async function lastExpression(source: string): Promise<[from: number, to: number]> {
  const { javascriptLanguage } = await import("@codemirror/lang-javascript");
  const tree = javascriptLanguage.parser.parse(source);
  let last = tree.topNode.lastChild;
  while (last?.name.endsWith("Comment")) last = last.prevSibling;
  const expression = last?.name === "ExpressionStatement" ? last.firstChild : null;
  if (expression === null) throw new Error("kernels: expected a last line that is an expression, got none");
  const { from, to } = expression;
  tree.iterate({
    ...{ from, to },
    enter({ name, from: start }) {
      if (start < from || LATER.test(name)) return start < from;
      if (name === "await") throw new Error("kernels: expected a last line that does not wait, got an await");
      return true;
    },
  });
  return [from, to];
}
