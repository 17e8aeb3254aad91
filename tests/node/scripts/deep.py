"""A graph 20,000 operations deep: built, differentiated, realized, dropped, collected."""

import gc
import json

from polygrad import Tensor

x = Tensor([1.0, 2.0], requires_grad=True)
y = x
for i in range(20_000):
    y = y * 0.9999 if i % 2 else y + 0.001
y.sum().backward()
result = {"gradient": x.grad.tolist(), "value": y.tolist()}
del x, y
gc.collect()
result["afterwards"] = (Tensor([1, 2]) + 1).tolist()
print(json.dumps(result))
