import { create } from "polygrad";

const { Tensor } = await create();

const x = new Tensor([
  [1, 2, 3],
  [4, 5, 6],
]);
const y = x.mul(2).add(1).sum(1); // nothing has been computed yet
console.log("sums of the rows:", await y.tolist());
console.log("softmax:", await x.softmax(1).tolist());
console.log("product with its transpose:", await x.matmul(x.transpose()).tolist());
