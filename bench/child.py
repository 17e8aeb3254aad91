"""One measurement in one fresh process: `child.py LIBRARY CASE`, on any host; the last line printed is JSON.

Knows the cases of the compile suite and the eager ones of breadth, not who asks nor what is hoped for.
Timed parts start after the library is imported and the parameters are in place, and end when the result has
been read back. `value` is the measurement; `check` a number that every library must agree on, or the
measurement is of something else. On a GPU `handed` is the part of it until all was handed to the device, and
`driver` what its compiler took of that.
"""

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any


def gpt_forward(lib: Any) -> dict[str, float]:
    from models import gpt

    config = gpt.Config()
    model, ids = gpt.GPT(lib, config), gpt.tokens(lib, config, 1)
    driver = driver_clock(lib)
    start = time.perf_counter()
    found = model(ids).realize()
    handed = time.perf_counter() - start
    logits = found.data()
    seconds = time.perf_counter() - start
    floats = memoryview(bytes(logits)).cast("f")
    check = sum(map(abs, floats)) / len(floats)
    return {"value": seconds, "handed": handed, "driver": driver(), "check": check}


def driver_clock(lib: Any) -> Any:
    """A function that says how many seconds a GPU's own compiler has taken since this call."""
    device = lib.Device[lib.Device.DEFAULT]
    if lib.Device.DEFAULT != "WEBGPU" or lib.__name__ != "polygrad":
        return lambda: 0.0
    taken, compile_ = [0.0], device.host.compile

    def timed(sources: Any) -> Any:
        start = time.perf_counter()
        try:
            return compile_(sources)
        finally:
            taken[0] += time.perf_counter() - start

    device.host.compile = timed
    return lambda: taken[0]


def gpt_train(lib: Any) -> dict[str, float]:
    from models import gpt

    config = gpt.Config()
    model = gpt.GPT(lib, config)
    ids, targets = gpt.tokens(lib, config, 1), gpt.tokens(lib, config, 2)
    lib.Tensor.training = True  # tinygrad is told by TRAINING=1 in the environment
    start = time.perf_counter()
    optimizer = lib.nn.optim.Adam(model.parameters, lr=1e-3)
    loss = model.loss(ids, targets).backward()
    lib.Tensor.realize(loss, *optimizer.schedule_step())
    check = loss.item()
    return {"value": time.perf_counter() - start, "check": check}


def kernels(lib: Any, name: str) -> dict[str, float]:
    from models import blocks

    inputs, forward = blocks.BLOCKS[name](lib)
    count = kernel_counter(lib)
    before = count()
    forward(*inputs).realize()
    return {"value": count() - before}


def kernel_counter(lib: Any) -> Any:
    """A function that says how many kernels `lib` has launched so far."""
    if lib.__name__ == "tinygrad":
        return lambda: lib.GlobalCounters.kernel_count
    stats = importlib.import_module(f"{lib.__name__}.engine.stats").stats
    return lambda: stats.launches


def import_library(name: str) -> dict[str, float]:
    """What a program's first line costs: the library and its Tensor, which may load late."""
    start = time.perf_counter()
    getattr(importlib.import_module(name), "Tensor", None)
    return {"value": time.perf_counter() - start}


def eager(lib: Any, kind: str) -> dict[str, float]:
    """Milliseconds of a step in which nothing is captured; the check is the sum of what is checked."""
    import shapes
    import with_tensor

    def uniform(seed: int, count: int) -> list[float]:
        return [shapes.uniform(seed, i) for i in range(count)]

    program = with_tensor.Maker(lib, uniform).make(kind, {})
    check = sum(program.check())
    return {"value": 1e3 * min(shapes.sample(program, 0.1) for _ in range(20)), "check": check}


def main(library: str, case: str) -> dict[str, float]:
    if case == "import":
        return import_library(library)
    lib = importlib.import_module(library)
    importlib.import_module(f"{library}.nn")
    if case == "gpt-forward":
        return gpt_forward(lib)
    if case == "gpt-train":
        return gpt_train(lib)
    if case.startswith("eager-"):
        return eager(lib, case)
    return kernels(lib, case)


sys.path.insert(0, str(Path(__file__).parent / "libraries"))
print(json.dumps(main(*sys.argv[1:])))
