"""Exports a model where kernels are made for threads; prints the file, and what it computes, in hex."""

import json

from polygrad import Tensor, TinyJit

Tensor.manual_seed(0)
w = Tensor.rand(256, 256).realize()
x = Tensor.rand(256, 256).realize()


@TinyJit
def multiply(x):
    return {"product": (x @ w).relu()}


for _ in range(2):
    found = multiply(x)["product"]
multiply.save("/tmp/threaded.pgrd")
with open("/tmp/threaded.pgrd", "rb") as f:
    file = f.read().hex()


def hexes(tensor):
    return bytes(tensor.data().cast("B")).hex()


threads = multiply.program.threads
print(json.dumps({"file": file, "x": hexes(x), "product": hexes(found), "threads": threads}))
