"""What large kernels compute with one thread and with two, as JSON: digests of the bits."""

import gc
import hashlib
import json
import time

from polygrad import Device, Tensor, TinyJit, compile_step, nn, set_num_threads
from polygrad.runtime.buffer import Allocation

runtime = Device["WASM"]


def digest(*tensors):
    return hashlib.sha256(b"".join(bytes(t.data().cast("B")) for t in tensors)).hexdigest()


def ramp(*shape):
    n = 1
    for s in shape:
        n *= s
    return (((Tensor.arange(n) * 37 % 101).cast("float32") - 50) / 64).reshape(*shape).realize()


def loss_of(model, x, y):
    return model(x).cross_entropy(y)


def training(steps, captured):
    """The loss and the weights after some steps."""
    Tensor.manual_seed(5)
    model = nn.Linear(256, 128)
    opt = nn.optim.Adam(nn.state.get_parameters(model), lr=0.01)
    x, y = ramp(192, 256), (Tensor.arange(192) % 128).realize()
    if captured:
        step = compile_step(loss_of, model, opt, x, y)
        for _ in range(steps):
            loss = step.run(x, y)
        result["threads"] = step.program.threads
        return digest(loss, *opt.params)
    with Tensor.train():
        for _ in range(steps):
            opt.zero_grad()
            loss = loss_of(model, x, y).backward()
            opt.step()
    return digest(loss, *opt.params)


def wait_for(count):
    """Workers that have just been sent something are left out until they have seen it."""
    limit = time.time() + 20
    while hasattr(runtime.host, "ready_threads") and runtime.host.ready_threads() < count:
        assert time.time() < limit, "a thread does not come up"


def everything():
    a, b = ramp(200, 304), ramp(304, 264)
    jit = TinyJit(lambda u, v: ((u @ v).relu().softmax(1) @ v.transpose(0, 1)).realize())
    for _ in range(3):
        jit(a, b)
    wait_for(count)
    return {
        "matmul": digest(a @ b),
        "softmax": digest((ramp(700, 500) * 8).softmax(1)),
        "sum": digest(ramp(600, 800).sum(0)),
        "captured": digest(jit(a, b)),
        "training": training(3, False),
        "training captured": training(3, True),
    }


result = {"features": sorted(runtime.features), "bits": {}}
for count in (1, 2, 1, 2):
    set_num_threads(count)
    wait_for(count)
    result["bits"].setdefault(str(count), []).append(everything())

# Memory that comes while the threads are there is theirs too.
a = ramp(256, 256)
before = digest(a @ a)
held = Tensor.empty(48 << 20, dtype="uint8").contiguous().realize()
late = [ramp(256, 256) for _ in range(20)]
result["grown"] = all(digest((t + 0).realize() @ t) == before for t in late)
del held, late

# A thousand runs leave nothing behind.
twice = TinyJit(lambda u: ((u @ u) * 0.5).realize())
for _ in range(4):
    twice(a)
wait_for(2)
gc.collect()
allocated, objects, memory = Allocation.allocated_bytes, len(gc.get_objects()), runtime.heap.end
want = digest(twice(a))
for _ in range(1000):
    out = twice(a)
result["same"] = digest(out) == want
del out
gc.collect()
result["left"] = [
    Allocation.allocated_bytes - allocated,
    len(gc.get_objects()) - objects,
    runtime.heap.end - memory,
]
print(json.dumps(result))
