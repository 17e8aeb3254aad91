"""polygrad, and tinygrad, whose API it shares. Also read inside Pyodide: the core's language, no numpy.

`lib` is the module; `uniform(seed, count)` gives float32 in whatever form its Tensor takes. Steps are
captured (`TinyJit`): kernels only, no Python per operation.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

try:
    from bench.libraries import gpt2_tensor, ops_tensor, shapes
except ImportError:  # in a page the files lie side by side
    import gpt2_tensor
    import ops_tensor
    import shapes

Program = shapes.Program


class Maker:
    def __init__(self, lib: Any, uniform: Callable[[int, int], Any]) -> None:
        self.lib, self.uniform = lib, uniform
        count = getattr(lib, "get_num_threads", lambda: 1)
        self.threads = count() if lib.__name__ == "polygrad" else None
        self.fence = lib.Tensor([0.0]).contiguous().realize()
        lib.Tensor.training = True  # tinygrad is told by TRAINING=1 in the environment

    def make(self, kind: str, sizes: dict[str, Any]) -> Program:
        return getattr(self, kind.replace("-", "_"))(**sizes)

    def tensor(self, seed: int, *shape: int, scale: float = 1.0) -> Any:
        flat = self.lib.Tensor(self.uniform(seed, math.prod(shape)))
        return (flat * scale).reshape(*shape).contiguous().realize()

    def operand(self, seed: int, spec: dict[str, Any]) -> Any:
        """The numbers of a Row's operand."""
        return ops_tensor.operand(self.lib, self.uniform, seed, spec)

    def finish(self) -> None:
        if self.lib.__name__ == "polygrad":
            self.fence.item()  # which waits for what a device has still to do
        else:
            self.lib.Device[self.lib.Device.DEFAULT].synchronize()

    def forward(
        self, function: Callable[..., Any], *inputs: Any, seen: Callable[[Any], list[float]] | None = None
    ) -> Program:
        captured = self.lib.TinyJit(lambda *inputs: (function(*inputs).realize(),))
        return self.repeated(captured, inputs, seen or numbers)

    def matmul(self, m: int, k: int, n: int, dtype: str = "float32") -> Program:
        operands = (self.tensor(1, m, k), self.tensor(2, k, n))
        return self.forward(lambda a, b: a @ b, *(t.cast(dtype).contiguous().realize() for t in operands))

    def hundred(self) -> Program:
        """Products of 8 by 8, one after the other: next to nothing to compute in a hundred kernels."""

        def function(x: Any, w: Any) -> Any:
            for _ in range(shapes.HUNDRED):
                x = x @ w
            return x

        return self.forward(function, self.tensor(1, 8, 8), self.tensor(2, 8, 8, scale=shapes.HUNDRED_SCALE))

    def softmax(self, rows: int, columns: int) -> Program:
        return self.forward(lambda x: x.softmax(-1), self.tensor(1, rows, columns))

    def gelu(self, rows: int, columns: int) -> Program:
        return self.forward(lambda x: x.gelu(), self.tensor(1, rows, columns))

    def layernorm(self, rows: int, columns: int) -> Program:
        inputs = self.tensor(1, rows, columns), self.tensor(2, columns), self.tensor(3, columns)
        return self.forward(lambda x, weight, bias: x.layernorm(eps=1e-5) * weight + bias, *inputs)

    def chain(self, n: int) -> Program:
        def function(y: Any) -> Any:
            for a, b, c, d in shapes.CHAIN:
                y = (y * a + b).maximum(c)
                y = (y * y).minimum(d)
            return y

        return self.forward(function, self.tensor(1, n))

    def parameters(self, specs: Any) -> dict[str, Any]:
        return {name: self.tensor(seed, *shape, scale=scale) for name, seed, shape, scale in specs}

    def training(
        self,
        scores: Callable[[Any], Any],
        parameters: list[Any],
        lr: float,
        x: Any,
        capture: Callable[[Any], Any] | None = None,
    ) -> Program:
        optimizer = self.lib.nn.optim.SGD(parameters, lr=lr)
        labels = self.lib.Tensor(shapes.LABELS[: x.shape[0]], dtype="int32").realize()

        def train(x: Any, labels: Any) -> Any:
            optimizer.zero_grad()
            loss = scores(x).sparse_categorical_crossentropy(labels).backward()
            self.lib.Tensor.realize(loss, *optimizer.schedule_step())
            return loss

        captured = (capture or self.lib.TinyJit)(train)

        def check() -> list[float]:
            return [captured(x, labels).item() for _ in range(shapes.STEPS_CHECKED)]

        def step() -> None:
            captured(x, labels)

        return Program(step, check, self.finish, self.threads)

    def linear(self, weight: Any, bias: Any) -> Any:
        """An nn.Linear with these parameters; it keeps its weight as (out, in)."""
        layer = self.lib.nn.Linear(*weight.shape)
        layer.weight, layer.bias = weight.transpose().contiguous().realize(), bias
        return layer

    def mlp(self) -> Program:
        return self.two_layers(shapes.MLP, self.tensor(1, 64, 784))

    def tiny(self) -> Program:
        return self.two_layers(shapes.TINY, self.tensor(1, 1, 4))

    def eager_mlp(self) -> Program:
        """`mlp` as written, nothing captured."""
        return self.two_layers(shapes.MLP, self.tensor(1, 64, 784), lambda function: function)

    def eager_update(self) -> Program:
        """Next to nothing to compute, and nothing captured: what an operation costs by itself."""
        x = self.tensor(1, 4)
        y = self.tensor(2, 4)

        def step() -> None:
            nonlocal y
            y = (y * 1.0001 + x).realize()

        def check() -> list[float]:
            for _ in range(shapes.STEPS_CHECKED):
                step()
            return numbers(y)

        return Program(step, check, self.finish, self.threads)

    def eager_selection(self, op: str, size: int) -> Program:
        """An operation whose result is as large as the elements say, of others in each step."""
        function, x, steps = ops_tensor.SELECTIONS[op], self.tensor(1, size), self.tensor(2, size).sort()[0]

        def step() -> Any:
            nonlocal x
            x = (-x).realize()
            return function(x, steps).realize()

        return Program(step, lambda: numbers(step()), self.finish, self.threads)

    def first_call(self, m: int, k: int, n: int) -> Program:
        """A product at its first call, and captured; the seconds of both are what the check gives."""
        a, b = self.tensor(1, m, k), self.tensor(2, k, n)
        later = self.matmul(m, k, n)

        def check() -> list[float]:
            start = time.perf_counter()
            (a @ b).realize()
            self.finish()
            first = time.perf_counter() - start
            later.check()
            return [first, min(shapes.sample(later, 0.1) for _ in range(10))]

        return Program(later.step, check, self.finish, self.threads)

    def two_layers(self, specs: Any, x: Any, capture: Callable[[Any], Any] | None = None) -> Program:
        p = self.parameters(specs)
        l1, l2 = self.linear(p["w1"], p["b1"]), self.linear(p["w2"], p["b2"])
        parameters = [l1.weight, l1.bias, l2.weight, l2.bias]
        return self.training(lambda x: l2(l1(x).relu()), parameters, shapes.MLP_LR, x, capture)

    def convnet(self) -> Program:
        p = self.parameters(shapes.CONVNET)
        last = self.linear(p["w3"], p["b3"])

        def scores(x: Any) -> Any:
            x = x.conv2d(p["w1"], p["b1"]).relu().conv2d(p["w2"], p["b2"]).relu()
            return last(x.max_pool2d((2, 2)).flatten(1))

        parameters = [p["w1"], p["b1"], p["w2"], p["b2"], last.weight, last.bias]
        return self.training(scores, parameters, shapes.CONVNET_LR, self.tensor(1, 64, 1, 28, 28))

    def adam(self) -> Program:
        """A step on many small parameters, whose loss is the sum of their squares."""
        parameters = list(self.parameters(shapes.SMALL).values())
        optimizer = self.lib.nn.optim.Adam(parameters, lr=shapes.SMALL_LR)

        @self.lib.TinyJit
        def captured() -> Any:
            optimizer.zero_grad()
            losses = [p.square().sum() for p in parameters]
            loss = sum(losses[1:], losses[0]).backward()
            self.lib.Tensor.realize(loss, *optimizer.schedule_step())
            return loss

        def check() -> list[float]:
            losses = [captured().item() for _ in range(shapes.STEPS_CHECKED)]
            return losses + [v for parameter in parameters for v in numbers(parameter)]

        return Program(lambda: captured(), check, self.finish, self.threads)

    def operation(
        self, op: str, operands: list[Any], attributes: dict[str, Any], gradients: list[int], check: str
    ) -> Program:
        """A row of the breadth suite."""
        inputs = [self.operand(i + 1, x) for i, x in enumerate(operands)]
        function = (ops_tensor.OPERATIONS | ops_tensor.of_library(self.lib))[op]
        seen = moments if check == "moments" else numbers
        if not gradients:
            return self.forward(lambda *inputs: function(*inputs, **attributes), *inputs, seen=seen)
        incoming = self.tensor(shapes.GRADIENT_SEED, *function(*inputs, **attributes).shape)

        @self.lib.TinyJit
        def captured(*inputs: Any) -> Any:
            out = function(*inputs[:-1], **attributes)
            found = out.gradient(*(inputs[i] for i in gradients), gradient=inputs[-1])
            self.lib.Tensor.realize(out, *found)
            return out, *found

        return self.repeated(captured, [*inputs, incoming], seen)

    def repeated(
        self, captured: Callable[..., Any], inputs: Sequence[Any], seen: Callable[[Any], list[float]]
    ) -> Program:
        """A captured function of these, whose outputs are realized and checked."""

        def check() -> list[float]:
            for _ in range(3):  # runs, is captured, is replayed
                out = captured(*inputs)
            return [v for tensor in out for v in seen(tensor)]

        def step() -> None:
            captured(*inputs)

        return Program(step, check, self.finish, self.threads)

    def gpt2(self, dtype: str, **sizes: int) -> Program:
        return gpt2_tensor.make(self, shapes.GPT2(**sizes), dtype)

    def block_forward(self) -> Program:
        p = self.parameters(shapes.BLOCK)
        return self.forward(lambda x: block(p, x), self.tensor(1, 1, shapes.LENGTH, shapes.WIDTH))

    def block_backward(self) -> Program:
        p = self.parameters(shapes.BLOCK)
        x, g = (self.tensor(seed, 1, shapes.LENGTH, shapes.WIDTH) for seed in (1, 14))

        @self.lib.TinyJit
        def captured(x: Any, g: Any) -> Any:
            gradients = block(p, x).gradient(x, *p.values(), gradient=g)
            self.lib.Tensor.realize(*gradients)
            return gradients

        return self.repeated(captured, (x, g), numbers)

    def block_step(self) -> Program:
        """A training step: gradients for the one that comes in, and every parameter updated."""
        p = self.parameters(shapes.BLOCK)
        parameters = list(p.values())
        inputs = [self.tensor(seed, 1, shapes.LENGTH, shapes.WIDTH) for seed in (1, 14)]
        optimizer = self.lib.nn.optim.SGD(parameters, lr=shapes.BLOCK_LR)

        @self.lib.TinyJit
        def captured(x: Any, g: Any) -> Any:
            optimizer.zero_grad()
            loss = (block(p, x) * g).sum().backward()
            self.lib.Tensor.realize(loss, *optimizer.schedule_step())
            return loss

        def check() -> list[float]:
            for _ in range(shapes.STEPS_CHECKED):
                captured(*inputs)
            return [v for parameter in parameters for v in numbers(parameter)]

        return Program(lambda: captured(*inputs), check, self.finish, self.threads)


def block(p: dict[str, Any], x: Any) -> Any:
    def heads(t: Any) -> Any:
        return t.reshape(1, shapes.LENGTH, shapes.HEADS, -1).transpose(1, 2)

    h = x.layernorm(eps=1e-5) * p["ln1_w"] + p["ln1_b"]
    q, k, v = (heads(t) for t in h.linear(p["qkv_w"], p["qkv_b"]).chunk(3, dim=-1))
    h = q.scaled_dot_product_attention(k, v, is_causal=True).transpose(1, 2).reshape(*x.shape)
    x = x + h.linear(p["out_w"], p["out_b"])
    h = x.layernorm(eps=1e-5) * p["ln2_w"] + p["ln2_b"]
    return x + h.linear(p["up_w"], p["up_b"]).gelu().linear(p["down_w"], p["down_b"])


def moments(tensor: Any) -> list[float]:
    """Of random numbers: the mean and the mean square."""
    return [tensor.mean().item(), tensor.square().mean().item()]


def numbers(tensor: Any) -> list[float]:
    """About a thousand elements of a realized tensor, evenly spread."""
    data = memoryview(tensor.cast("float32").realize().data())
    flat = memoryview(data.cast("B") if data.format != "B" else data).cast("f")
    return [flat[i] for i in range(*shapes.spread(len(flat)).indices(len(flat)))]
