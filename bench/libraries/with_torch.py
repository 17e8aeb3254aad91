"""PyTorch, eager, or the same functions through `torch.compile`; on the CPU, or where TORCH_DEVICE says."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from bench.libraries import gpt2_torch, inputs, ops_torch, shapes
from bench.libraries.inputs import into, uniform
from bench.libraries.shapes import Program

DEVICE = torch.device(os.environ.get("TORCH_DEVICE", "cpu"))
Compile = Callable[[Callable[..., Any]], Callable[..., Any]]


def make(kind: str, sizes: dict[str, Any], compiled: bool = False) -> Program:
    return KINDS[kind](torch.compile if compiled else lambda f: f, **sizes)


def tensor(seed: int, *shape: int) -> torch.Tensor:
    return torch.from_numpy(uniform(seed, *shape)).to(DEVICE)


def numbers(x: torch.Tensor) -> list[float]:
    return inputs.numbers(x.detach().float().cpu())


def finish() -> None:
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()


def forward(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> Program:
    @torch.no_grad()
    def step() -> torch.Tensor:
        return function(*inputs)

    return Program(step, lambda: numbers(step()), finish)


def matmul(compiled: Compile, m: int, k: int, n: int, dtype: str = "float32") -> Program:
    operands = (tensor(1, m, k), tensor(2, k, n))
    return forward(compiled(torch.matmul), *(t.to(getattr(torch, dtype)) for t in operands))


def hundred(compiled: Compile) -> Program:
    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        for _ in range(shapes.HUNDRED):
            x = x @ w
        return x

    return forward(compiled(function), tensor(1, 8, 8), tensor(2, 8, 8) * shapes.HUNDRED_SCALE)


def softmax(compiled: Compile, rows: int, columns: int) -> Program:
    return forward(compiled(lambda x: x.softmax(-1)), tensor(1, rows, columns))


def gelu(compiled: Compile, rows: int, columns: int) -> Program:
    return forward(compiled(lambda x: F.gelu(x, approximate="tanh")), tensor(1, rows, columns))


def layernorm(compiled: Compile, rows: int, columns: int) -> Program:
    function = compiled(lambda x, w, b: F.layer_norm(x, (columns,), w, b, 1e-5))
    return forward(function, tensor(1, rows, columns), tensor(2, columns), tensor(3, columns))


def chain(compiled: Compile, n: int) -> Program:
    def function(y: torch.Tensor) -> torch.Tensor:
        for a, b, c, d in shapes.CHAIN:
            y = (y * a + b).clamp_min(c)
            y = (y * y).clamp_max(d)
        return y

    return forward(compiled(function), tensor(1, n))


def copy(compiled: Compile, n: int) -> Program:
    x, y = tensor(1, n), torch.empty(n, device=DEVICE)

    def step() -> None:
        y.copy_(x)

    return into(step, y)


Specs = list[tuple[str, int, tuple[int, ...], float]]


def parameters(specs: Specs) -> dict[str, torch.Tensor]:
    return {name: (tensor(seed, *shape) * scale).requires_grad_() for name, seed, shape, scale in specs}


def training(compiled: Compile, loss_of: Callable[..., torch.Tensor], p: Any, lr: float, x: Any) -> Program:
    optimizer = torch.optim.SGD(p.values(), lr=lr)
    labels = torch.tensor(shapes.LABELS[: len(x)], device=DEVICE)
    function = compiled(loss_of)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = function(p, x, labels)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Program(step, lambda: [float(step()) for _ in range(shapes.STEPS_CHECKED)], finish)


def mlp(compiled: Compile) -> Program:
    return two_layers(compiled, shapes.MLP, tensor(1, 64, 784))


def eager_update(compiled: Compile) -> Program:
    x, y = tensor(1, 4), tensor(2, 4)

    def step() -> None:
        nonlocal y
        y = y * 1.0001 + x

    def check() -> list[float]:
        for _ in range(shapes.STEPS_CHECKED):
            step()
        return numbers(y)

    return Program(step, check)


def eager_selection(compiled: Compile, op: str, size: int) -> Program:
    function, x, steps = ops_torch.SELECTIONS[op], tensor(1, size), tensor(2, size).sort()[0]

    def step() -> torch.Tensor:
        nonlocal x
        x = -x
        return function(x, steps)

    return Program(step, lambda: numbers(step()))


def tiny(compiled: Compile) -> Program:
    return two_layers(compiled, shapes.TINY, tensor(1, 1, 4))


def two_layers(compiled: Compile, specs: Specs, x: torch.Tensor) -> Program:
    # nn.Linear keeps its weights as (out, in)
    p = parameters(specs)
    p |= {n: p[n].detach().T.contiguous().requires_grad_() for n in ("w1", "w2")}

    def loss(p: Any, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        hidden = F.linear(x, p["w1"], p["b1"]).relu()
        return F.cross_entropy(F.linear(hidden, p["w2"], p["b2"]), labels)

    return training(compiled, loss, p, shapes.MLP_LR, x)


def convnet(compiled: Compile) -> Program:
    p = parameters(shapes.CONVNET)
    p["w3"] = p["w3"].detach().T.contiguous().requires_grad_()

    def loss(p: Any, x: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        hidden = F.conv2d(F.conv2d(x, p["w1"], p["b1"]).relu(), p["w2"], p["b2"]).relu()
        return F.cross_entropy(F.linear(F.max_pool2d(hidden, 2).flatten(1), p["w3"], p["b3"]), labels)

    return training(compiled, loss, p, shapes.CONVNET_LR, tensor(1, 64, 1, 28, 28))


def adam(compiled: Compile) -> Program:
    p = list(parameters(shapes.SMALL).values())
    optimizer = torch.optim.Adam(p, lr=shapes.SMALL_LR)

    def step() -> float:
        optimizer.zero_grad()
        loss = torch.stack([x.square().sum() for x in p]).sum()
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    def check() -> list[float]:
        losses = [step() for _ in range(shapes.STEPS_CHECKED)]
        return losses + [v for x in p for v in numbers(x.detach())]

    return Program(step, check, finish)


def block(p: Any, x: torch.Tensor) -> torch.Tensor:
    heads = (1, shapes.LENGTH, shapes.HEADS, -1)
    h = F.layer_norm(x, x.shape[-1:], p["ln1_w"], p["ln1_b"])
    q, k, v = (t.reshape(heads).transpose(1, 2) for t in (h @ p["qkv_w"] + p["qkv_b"]).chunk(3, -1))
    h = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape)
    x = x + (h @ p["out_w"] + p["out_b"])
    h = F.layer_norm(x, x.shape[-1:], p["ln2_w"], p["ln2_b"])
    h = F.gelu(h @ p["up_w"] + p["up_b"], approximate="tanh")
    return x + (h @ p["down_w"] + p["down_b"])


def block_forward(compiled: Compile) -> Program:
    p = {name: t.detach() for name, t in parameters(shapes.BLOCK).items()}
    return forward(compiled(lambda x: block(p, x)), tensor(1, 1, shapes.LENGTH, shapes.WIDTH))


def block_backward(compiled: Compile) -> Program:
    p = parameters(shapes.BLOCK)
    x = tensor(1, 1, shapes.LENGTH, shapes.WIDTH).requires_grad_()
    g = tensor(14, 1, shapes.LENGTH, shapes.WIDTH)
    function = compiled(block)

    def step() -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(function(p, x), [x, *p.values()], g)

    def check() -> list[float]:
        return [v for gradient in step() for v in numbers(gradient)]

    return Program(step, check, finish)


def block_step(compiled: Compile) -> Program:
    p = parameters(shapes.BLOCK)
    x, g = (tensor(seed, 1, shapes.LENGTH, shapes.WIDTH) for seed in (1, 14))
    optimizer = torch.optim.SGD(p.values(), lr=shapes.BLOCK_LR)
    function = compiled(lambda p, x, g: (block(p, x) * g).sum())

    def step() -> None:
        optimizer.zero_grad()
        function(p, x, g).backward()
        optimizer.step()

    def check() -> list[float]:
        for _ in range(shapes.STEPS_CHECKED):
            step()
        return [v for parameter in p.values() for v in numbers(parameter)]

    return Program(step, check, finish)


def gpt2(compiled: Compile, dtype: str, **sizes: int) -> Program:
    of = shapes.GPT2(**sizes)
    return gpt2_torch.make(parameters(shapes.gpt2_parameters(of)), of, dtype, compiled, finish)


KINDS = {
    "matmul": matmul,
    "hundred": hundred,
    "softmax": softmax,
    "gelu": gelu,
    "layernorm": layernorm,
    "chain": chain,
    "copy": copy,
    "mlp": mlp,
    "tiny": tiny,
    "eager-mlp": mlp,
    "eager-update": eager_update,
    "eager-selection": eager_selection,
    "convnet": convnet,
    "adam": adam,
    "block-forward": block_forward,
    "block-backward": block_backward,
    "block-step": block_step,
    "gpt2": gpt2,
    "operation": lambda compiled, **row: ops_torch.make(**row),
}
