/** Functions of functions, case by case, as in cases.mjs. */

import { makeNet, rows, thrown } from "./case_helpers.mjs";

const lists = (values) => Promise.all(values.map((t) => t.tolist()));

export const transformCases = {
  async vmap({ Tensor, vmap, compileStep, optim }) {
    const [x, y] = [new Tensor(rows(3, 4)), new Tensor(rows(3, 4)).cos()];
    const weight = new Tensor(rows(4, 2), { requiresGrad: true });
    const depths = [];
    const distances = vmap((a, b) => a.sub(b).square().sum())(x, y);
    const mixed = vmap((a, w, name) => [a.matmul(w), name], { inAxes: [0, null, null] })(x, weight, "kept");
    const columns = vmap(
      ({ a, parts }) => {
        depths.push(a.shape);
        return { sum: a.add(parts[0]), twice: [a.mul(2)] };
      },
      { inAxes: 1, outAxes: -1 },
    )({ a: x, parts: [y] });
    const pairs = vmap((a) => vmap((b) => a.mul(b).sum())(y))(x);
    const axes = vmap((a, b) => [a.mul(b), b.sum()], { inAxes: [0, null], outAxes: [1, null] })(x, y.at(0));
    const gradients = vmap((a) => a.matmul(weight).square().sum().gradient(weight)[0])(x);
    const shapes = [distances, mixed[0], columns.sum, columns.twice[0], pairs, axes[0], axes[1]].map(
      (t) => t.shape,
    );
    const step = compileStep(
      (w, a) => vmap((row) => row.matmul(w).square().sum())(a).mean(),
      weight,
      new optim.SGD([weight], 0.1),
      x,
    );
    for (let i = 0; i < 3; i++) step.run(x);
    return {
      values: await lists([distances, mixed[0], columns.sum, columns.twice[0], pairs, ...axes, gradients]),
      kept: mixed[1],
      depths,
      shapes,
      trained: await weight.tolist(),
      sizes: await thrown(() => vmap((a, b) => a.add(b))(x, y.at("0:2")).tolist()),
      none: await thrown(() => vmap((a) => a)(3)),
      count: await thrown(() => vmap((a) => a, { inAxes: [0, 0] })(x)),
      function: await thrown(() => vmap(3)),
      promise: await thrown(() => vmap(async (a) => a)(x).tolist()),
      own: await thrown(() =>
        vmap(() => {
          throw new RangeError("mine");
        })(x),
      ),
    };
  },

  async checkpoint({ Tensor, nn, checkpoint }) {
    Tensor.manualSeed(7);
    const net = makeNet(nn);
    const x = new Tensor(rows(6, 4), { requiresGrad: true });
    const gradients = async (forward) => {
      for (const t of [x, ...nn.state.getParameters(net)]) t.grad = null;
      forward(x).square().sum().backward();
      return lists([x.grad, net.hidden.weight.grad, net.out.weight.grad]);
    };
    const plain = await gradients((a) => net.forward(a));
    const again = await gradients((a) => checkpoint((b) => net.forward(b), a));
    return {
      plain,
      again,
      shape: checkpoint((b) => net.forward(b), x).shape,
      integers: await thrown(() => checkpoint((b) => b.argmax(1), x).tolist()),
      nothing: await thrown(() => checkpoint(() => undefined, x).tolist()),
    };
  },

  async customGradient({ Tensor, customGradient, compileStep, optim }) {
    const x = new Tensor([1, -2, 3], { requiresGrad: true });
    const calls = [];
    const clipped = customGradient(
      (a, scale) => a.mul(scale),
      (gradient, value, a) => {
        calls.push([gradient.shape, value.shape, a.shape]);
        return gradient.mul(value).clamp(-1, 1);
      },
    );
    clipped(x, 5).sum().backward();
    const first = await x.grad.tolist();
    x.grad = null;
    clipped(x, 5).square().sum().backward(); // another gradient of the same function
    const second = await x.grad.tolist();
    const y = new Tensor([4, 5, 6], { requiresGrad: true });
    const both = customGradient(
      (a, b) => [a.add(b), a.mul(b)],
      ([ofSum, ofProduct], _, a, b) => [ofSum.mul(10).add(ofProduct.mul(a)), b.mul(ofProduct)],
    );
    const [sum, product] = both(x, y);
    const [of, ofY] = sum.sum().add(product.sum()).gradient(x, y);
    const weight = new Tensor([1, 1]);
    const opt = new optim.SGD([weight], 1);
    const step = compileStep(
      (w) =>
        customGradient(
          (a) => a,
          (g) => g.mul(3),
        )(w).sum(),
      weight,
      opt,
    );
    const steps = [];
    for (let i = 0; i < 3; i++) {
      step.run();
      steps.push(await weight.tolist());
    }
    const wrong = customGradient(
      (a) => a,
      () => new Tensor([1, 2]),
    );
    return {
      first,
      second,
      calls: calls[0],
      values: await lists([sum, product, of, ofY]),
      steps,
      wrong: await thrown(() => wrong(x).sum().gradient(x)[0].tolist()),
      result: await thrown(() =>
        customGradient(
          () => 3,
          (g) => g,
        )(x),
      ),
    };
  },

  async hooks({ Tensor }) {
    const w = new Tensor([1, 2], { requiresGrad: true });
    const handle = w.registerHook((gradient) => gradient.mul(10));
    const found = [];
    for (let i = 0; i < 3; i++) {
      w.grad = null;
      w.mul(w).sum().backward();
      found.push(await w.grad.tolist());
      if (i === 1) handle.remove();
    }
    const seen = w.registerHook(() => undefined);
    w.grad = null;
    w.mul(w).sum().backward();
    const kept = await w.grad.tolist();
    seen.remove();
    return {
      found,
      kept,
      without: await thrown(async () => {
        const fixed = new Tensor([1], { requiresGrad: false });
        await fixed.registerHook((g) => g).ready();
      }),
    };
  },

  async derivatives({ Tensor, vjp, jvp, jacrev, jacfwd, hessian, vmap }) {
    const x = new Tensor([0.5, -1, 2]);
    const w = new Tensor(rows(3, 2));
    const f = (a) => a.matmul(w).sin();
    const [out, pullBack] = vjp(f, [x]);
    const [gradient] = pullBack(out.onesLike());
    const [both, pull, other] = vjp((a, b) => [{ p: a.mul(b), s: a.sum() }, a.add(1)], [x, x.exp()], {
      hasAux: true,
    });
    const of = pull({ p: both.p.onesLike(), s: both.s.onesLike() });
    const [value, slope] = jvp(f, [x], [x.onesLike()]);
    const [, , aux] = jvp((a) => [a.sin(), a.cos()], [x], [x.onesLike()], { hasAux: true });
    const rowsOf = jacrev(f)(x);
    const columns = jacfwd(f)(x);
    const several = jacrev((a, b) => ({ c: a.mul(b) }), { argnums: [0, 1] })(x, x.exp());
    const withAux = jacrev((a) => [a.square(), a.sum()], { hasAux: true })(x);
    const curvature = hessian((a) => a.pow(3).sum())(x);
    const perRow = vmap(jacrev((row) => row.square().sum()))(w);
    return {
      values: await lists([
        out,
        gradient,
        both.p,
        both.s,
        other,
        ...of,
        value,
        slope,
        aux,
        rowsOf,
        columns,
        ...several.c,
        ...withAux,
        curvature,
        perRow,
      ]),
      primals: await thrown(() => vjp(f, x)),
      integers: await thrown(() => jacrev((a) => a)(new Tensor([1], { dtype: "int32" })).tolist()),
      shapes: await thrown(() => pullBack(x)[0].tolist()),
    };
  },
};
