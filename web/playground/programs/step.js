import { create } from "polygrad";

const { Tensor, nn, optim, compileStep } = await create();

// Forward, backward and the optimizer together, compiled once into one program of WebAssembly.
Tensor.manualSeed(0);
const model = [new nn.Linear(1, 64), new nn.Linear(64, 1)];
const forward = ([first, second], x) => second.forward(first.forward(x).tanh());
const optimizer = new optim.Adam(nn.state.getParameters(model), { lr: 0.01 });
const x = Tensor.linspace(-3, 3, 256).reshape(256, 1).realize();
const y = x.mul(2).sin().realize();
const loss = (layers, x, y) => forward(layers, x).sub(y).square().mean();
const step = compileStep(loss, model, optimizer, x, y);
console.log(step.nKernels, "kernels a step,", step.arenaBytes, "bytes of intermediates");

const start = performance.now();
for (let i = 0; i < 2000; i++) {
  step.run(x, y);
  if (i % 10 === 0) plot(await step.lossValue());
}
const seconds = (performance.now() - start) / 1000;
console.log(Math.round(2000 / seconds), "steps a second, loss", await step.lossValue());
