import { create } from "polygrad";

const { Tensor } = await create();

// The slope of sin(x) * x², and how it compares with a difference quotient.
const f = (x) => x.sin().mul(x.square());
const x = new Tensor([-1, 0, 0.5, 2], { requiresGrad: true });
f(x).sum().backward();
const h = 1e-3;
const quotient = f(x.add(h))
  .sub(f(x.sub(h)))
  .div(2 * h);
console.log("gradient:  ", await x.grad.tolist());
console.log("difference:", await quotient.tolist());
