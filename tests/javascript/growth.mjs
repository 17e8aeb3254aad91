/** Whether memory grows: many operations and training steps, whose objects nobody disposes of. */

/** Live tensors and bytes on the Python side after each stretch of work; `collect` collects garbage. */
export async function grow(pg, collect) {
  const { Tensor, nn, optim, compileStep } = pg;
  const left = async () => {
    for (let i = 0; i < 3; i++) {
      await collect();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const found = await pg.python(
      [
        "import gc; from polygrad.tensor.core.registry import _alive; from polygrad import Device",
        "from polygrad.uop.intern import collect; collect()",
        "[len(_alive), Device['WASM'].heap.allocated]",
      ].join("\n"),
    );
    return Array.from(found);
  };
  const a = Tensor.rand(1000).realize();
  await a.add(1).sum().item();
  const start = await left();
  for (let i = 0; i < 10_000; i++) {
    const b = a.add(1);
    if (i % 100 === 0) await b.sum().item();
  }
  const operations = await left();

  const model = { a: new nn.Linear(16, 8), b: new nn.Linear(8, 4) };
  const opt = new optim.SGD(nn.state.getParameters(model), { lr: 0.01 });
  const x = Tensor.rand(16, 16).realize();
  const y = new Tensor(new Int32Array(16)).realize();
  const lossOf = (m, x, y) => m.b.forward(m.a.forward(x).relu()).crossEntropy(y);
  const eager = () =>
    Tensor.train(() => {
      opt.zeroGrad();
      const loss = lossOf(model, x, y).backward();
      opt.step();
      return loss;
    });
  const step = compileStep(lossOf, model, opt, x, y);
  await eager().item();
  await step.run(x, y).item();
  const before = await left();
  for (let i = 0; i < 500; i++) await eager().item();
  const trained = await left();
  for (let i = 0; i < 500; i++) await step.run(x, y).item();
  return { start, operations, before, trained, captured: await left() };
}
