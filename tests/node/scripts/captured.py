"""Captured steps, as JSON: losses and weights bit for bit, what a run leaves, and a Program to take along."""

import base64
import gc
import json

from polygrad import Tensor, TinyJit, compile_step, nn
from polygrad.engine.stats import stats
from polygrad.runtime.buffer import Allocation

Tensor.manual_seed(0)


class Network:
    def __init__(self):
        self.first, self.last = nn.Linear(20, 16), nn.Linear(16, 4)

    def __call__(self, x):
        return self.last(self.first(x).relu().dropout(0.25))


def loss_of(model, x, y):
    return model(x).cross_entropy(y)


def hexes(tensor):
    return bytes(tensor.data().cast("B")).hex()


model = Network()
opt = nn.optim.Adam(nn.state.get_parameters(model), 0.01)
batches = [(Tensor.rand(8, 20).realize(), Tensor([(i + j) % 4 for j in range(8)])) for i in range(2)]
step = compile_step(loss_of, model, opt, *batches[0])
losses = []
for i in range(6):
    losses.append(hexes(step.run(*batches[i % 2])))

jit = TinyJit(lambda x: (model(x), Tensor.rand(3)))
draws = [[hexes(t) for t in jit(batches[i % 2][0])] for i in range(4)]
result = {"losses": losses, "weights": [hexes(p) for p in opt.params], "draws": draws}

# A run: no allocations, no objects.
step.run(*batches[0])
stats.reset()
gc.collect()
before = Allocation.allocated_bytes, len(gc.get_objects())
for _ in range(500):
    step.run(*batches[0])
gc.collect()
result["grown"] = [Allocation.allocated_bytes - before[0], len(gc.get_objects()) - before[1]]
result["runs"] = [stats.runs, stats.launches // step.n_kernels]

# What is in memory, and what one more step makes of it.
captured = step._step.captured


def contents():
    return [None if b is None else base64.b64encode(b.read()).decode() for b in captured.buffers]


program = base64.b64encode(step.program.to_bytes()).decode()
result["program"] = {"bytes": program, "before": contents()}
step.run()
result["program"]["after"] = contents()
print(json.dumps(result))
