import { create } from "polygrad";

const { Tensor, nn, optim } = await create();

Tensor.manualSeed(0);
const inputs = new Tensor([0, 0, 0, 1, 1, 0, 1, 1]).reshape(4, 2);
const wanted = new Tensor([0, 1, 1, 0]).reshape(4, 1);
const [hidden, out] = [new nn.Linear(2, 16), new nn.Linear(16, 1)];
const model = (x) => out.forward(hidden.forward(x).tanh()).sigmoid();
const parameters = nn.state.getParameters([hidden, out]);
const optimizer = new optim.Adam(parameters, { lr: 0.05 });

Tensor.training = true;
for (let i = 0; i < 150; i++) {
  optimizer.zeroGrad();
  const loss = model(inputs).sub(wanted).square().mean().backward();
  optimizer.step();
  plot(await loss.item()); // the curve below the output
}
const guesses = await model(inputs).round().flatten().tolist();
console.log("xor:", guesses);
