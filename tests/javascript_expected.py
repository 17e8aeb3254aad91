"""Expected results of the cases in `javascript/cases.mjs`, from numpy or from the same program on the CPU."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from polygrad import Tensor, TinyJit, compile_step, nn
from polygrad.training import fit


def rows(count: int, width: int) -> list[list[float]]:
    return [[math.sin(i * width + j) for j in range(width)] for i in range(count)]


class Net:
    def __init__(self) -> None:
        self.hidden, self.norm, self.out = nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 3, bias=False)

    def __call__(self, x: Tensor) -> Tensor:
        return self.out(self.norm(self.hidden(x)).gelu())


def construction() -> dict[str, Any]:
    return {
        "numbers": ["float32", [2, 2], [[1, 2], [3, 4]]],
        "scalar": ["float32", [], 2.5],
        "booleans": ["bool", [2], [True, False]],
        "bigints": ["int64", [2], ["1n", f"{-(2**62)}n"]],
        "integers": ["int32", [3], [1, 2, 3]],
        "halves": ["float16", [2], [float(np.float16(0.1)), -2]],
        "typed": ["float64", [2, 2], [[1, 2], [3, 4]]],
        "bytes": ["float32", [1], [1]],
        "clamped": ["uint8", [2], [1, 255]],
        "cast": ["float32", [2], [1, 2]],
        "nested": ["float32", [2, 2], [[1, 2], [3, 4]]],
        "copy": ["int64", [2], ["1n", "2n"]],
        "fromArray": ["float32", [2, 1], [[1], [2]]],
        "zeros": ["float32", [2, 3], np.zeros((2, 3)).tolist()],
        "ones": ["int8", [2], [1, 1]],
        "full": ["float32", [2], [3, 3]],
        "arange": ["int32", [2], [2, 5]],
        "eye": ["float32", [2, 2], [[1, 0], [0, 1]]],
        "linspace": ["float32", [3], [0, 0.5, 1]],
        "empty": ["float32", [0], []],
    }


def data() -> dict[str, Any]:
    return {
        "float32": ["Float32Array", ["1.5", "2"]],
        "int64": ["BigInt64Array", ["1", "2"]],
        "uint64": ["BigUint64Array", [str(2**63)]],
        "bool": ["Uint8Array", ["1"]],
        "item": "3",
        "empty": ["Float32Array", []],
    }


def operators() -> dict[str, Any]:
    a, b, i = (np.array(x, dtype=np.float32) for x in (rows(3, 4), rows(4, 2), [1, 2, 3]))
    soft = np.exp(a) / np.exp(a).sum(1, keepdims=True)
    image = np.array(rows(1, 16)).reshape(2, 2, 2, 2)
    float32: dict[str, Any] = {
        "arithmetic": ((a + 1) * 2 - a) / 3,
        "matmul": a @ b,
        "sum": a.sum(),
        "sumAxis": a.sum(1),
        "sumNamed": a.sum(keepdims=True),
        "softmax": soft,
        "alias": np.log(soft),
        "where": np.where(a > 0, a, -1),
        "negativeZero": np.array([-math.inf]),
        "maximum": np.maximum(a, 0.25),
        "reshape": a.reshape(2, -1),
        "permute": a.T,
        "transpose": a.T,
        "cat": np.concatenate([a, a], 1),
        "stack": np.stack([a, a]),
        "pad": np.pad(a, ((0, 0), (1, 0)), constant_values=9),
        "einsum": (a @ b).T,
        "conv2d": image.sum((1, 3)).reshape(1, 1, 2, 2),
    }
    out = {name: [value.tolist(), "float32"] for name, value in float32.items()}
    out["list"] = [[2, 4, 6], "int32"]
    out["array"] = [[4, 10, 18], "int32"]
    out["weak"] = [[2, 4, 6], "int32"]
    out["infinite"] = [(a != 0).tolist(), "bool"]
    out["cast"] = [(a * 10).astype(np.int32).tolist(), "int32"]
    order = np.argsort(-a, 1)
    return {
        **out,
        "sort": [np.take_along_axis(a, order, 1).tolist(), order.tolist()],
        "varMean": [a.var(0, ddof=1).tolist(), a.mean(0).tolist()],
        "split": [a[:, :2].tolist(), a[:, 2:].tolist()],
        "meshgrid": [x.tolist() for x in np.meshgrid(i, [4, 5], indexing="ij")],
    }


def indexing() -> dict[str, Any]:
    t = np.arange(24).reshape(2, 3, 4)
    return {
        "element": t[1].tolist(),
        "negative": 14,
        "slice": t[0:1, :, 1:3].tolist(),
        "step": t[..., ::-2].tolist(),
        "helper": t[:, 1:].tolist(),
        "axis": t[None, 0, ..., None].tolist(),
        "list": t[0, [2, 0]].tolist(),
        "tensor": t[[1, 0], ..., 0].tolist(),
        "set": [[0, 5, 5], [1, 2, 3]],
    }


def autograd() -> dict[str, Any]:
    return {
        "first": [2, 4, 6],
        "g": [3, 12, 27],
        "second": [6, 12, 18],
        "free": False,
        "again": np.exp([1, 2, 3]).tolist(),
    }


def batch() -> tuple[Tensor, Tensor]:
    return Tensor(rows(6, 4)), Tensor([0, 1, 2, 0, 1, 2])


def training() -> dict[str, Any]:
    Tensor.manual_seed(7)
    net = Net()
    opt = nn.optim.AdamW(nn.state.get_parameters(net), 0.05, weight_decay=0.1)
    x, y = batch()
    losses = []
    with Tensor.train():
        for _ in range(10):
            opt.zero_grad()
            loss = net(x).cross_entropy(y, label_smoothing=0.1).backward()
            opt.step()
            losses.append(loss.item())
    return {
        "losses": losses,
        "modes": [False, False],
        "names": list(nn.state.get_state_dict(net)),
        "eps": 1e-5,
        "noBias": None,
        "final": net(x).tolist(),
    }


def compiled() -> dict[str, Any]:
    Tensor.manual_seed(7)
    net = Net()
    opt = nn.optim.SGD(nn.state.get_parameters(net), lr=0.1, momentum=0.9)
    x, y = batch()

    def fn(model: Net, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        out = model(a)
        return out.cross_entropy(b), out.argmax(1)

    step = compile_step(fn, net, opt, x, y)
    losses, guesses = [], None
    for _ in range(10):
        loss, grads = step.run(x, y)
        losses.append(loss.item())
        guesses = grads.tolist()
    opt.lr.assign(Tensor([0.0]))
    step.run()
    loss, state = step.loss_value(), nn.state.get_state_dict(opt)
    forms = [[loss, step.run()[1].tolist(), [6]]] * 4
    return {
        "losses": losses,
        "guesses": guesses,
        "modes": [True],
        "file": 6,
        "profiled": True,
        "loss": loss,
        "state": list(state),
        "forms": forms,
    }


def fitted() -> dict[str, Any]:
    Tensor.manual_seed(7)
    net = Net()
    x = Tensor(rows(37, 4))
    y = Tensor([i % 3 for i in range(37)], dtype="int32")
    history = fit(
        net,
        (x, y),
        loss="cross_entropy",
        metrics=["accuracy"],
        epochs=4,
        batch_size=8,
        validation=0.2,
        progress=False,
    )
    return {
        "history": history.values,
        "final": net(x[:3]).tolist(),
        "resumed": True,
        "seen": [1, 2, 3, 4],
        "stopped": ["onEpoch stopped it", 2],
        "aborted": "enough",
        "errors": ["ArgumentError", "ArgumentError", "ArgumentError", "ShapeError"],
    }


def jit() -> dict[str, Any]:
    w = Tensor([3.0, 3.0]).realize()

    @TinyJit
    def f(x: Tensor, scale: int) -> tuple[Tensor, Tensor]:
        return x * w * scale, x.sum()

    results = []
    for i in range(5):
        scaled, total = f(Tensor([float(i), 1.0]), 2)
        results.append([scaled.tolist(), total.item(), "text", i > 0])
    return {"seen": results, "calls": 3, "after": [2, 2], "again": [3, 3], "bound": [0, 2, 4, 6]}


def layers() -> dict[str, Any]:
    Tensor.manual_seed(3)
    net = {
        "block": nn.TransformerBlock(4, 2, activation="relu"),
        "lstm": nn.LSTM(4, 3, bidirectional=True),
        "gru": nn.GRU(6, 4, 2),
        "conv": nn.Conv1d(2, 3, 2, padding="same"),
        "up": nn.ConvTranspose1d(3, 2, 2, 2),
        "attention": nn.MultiheadAttention(4, 2, batch_first=True),
    }
    nn.init.kaiming_normal_(net["conv"].weight, mode="fan_out", nonlinearity="relu")
    params = nn.state.get_parameters(net)
    opt = nn.optim.RMSprop(params, lr=0.01, momentum=0.5)
    opt.clip_gradients(0.5)
    warm_up, decay = nn.optim.LinearLR(opt, 0.5, total_iters=2), nn.optim.ExponentialLR(opt, 0.5)
    schedule = nn.optim.SequentialLR(opt, [warm_up, decay], [2])
    x = Tensor([rows(3, 4), rows(3, 4)])
    results = []
    with Tensor.train():
        for _ in range(4):
            opt.zero_grad()
            out, (h, c) = net["lstm"](net["block"](x, is_causal=True))
            sequence, last = net["gru"](out)
            image = net["up"](net["conv"](sequence.permute(1, 2, 0).reshape(3, 2, 4)))
            attended, _ = net["attention"](x, x, x)
            loss = image.square().mean() + h.sum() + c.mean() + last.sum() + attended.sum()
            loss.backward()
            opt.step()
            schedule.step()
            results.append([loss.item(), opt.lr.item(), [2, 3, 3]])
    norm = nn.optim.clip_grad_norm_(params, 0.1).item()
    return {"found": results, "norm": norm, "names": list(nn.state.get_state_dict(net))}


def sequential() -> list[Any]:
    Tensor.manual_seed(1)
    linear, norm = nn.Linear(2, 3), nn.RMSNorm(3)
    names = ["layers.0.weight", "layers.0.bias", "layers.2.weight", "more.w"]
    return [norm(linear(Tensor([[1.0, 2.0]])).relu()).tolist(), names]
