/** The program for a Python with polygrad in it. */

export const source = (a, b) => `
from polygrad import Tensor
(Tensor(${JSON.stringify(a)}, dtype="float32").reshape(4, 4) @ Tensor(${JSON.stringify(b)}, dtype="float32").reshape(4, 4)).flatten().tolist()
`;
