"""What expressions of proofs call besides the name under test: the same work, with each package's objects.

A model's parameters are set to numbers that follow from their names, which so have to be the same. What is
random is described by its mean and deviation.
"""

from __future__ import annotations

import importlib
import io
import json
import math
import tarfile
import zipfile
import zlib
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np


def moments(t: Any) -> tuple[float, ...]:
    """Mean and deviation of random numbers, both less if the deviation is greater than 1. Those of two
    packages' 10,000 numbers differ by 0.07, five deviations, once in a million times."""
    values = np.asarray(t.detach().numpy(), np.float64)
    deviation = float(values.std())
    return float(values.mean()) / max(1.0, deviation), math.log1p(deviation)


def written(view: Any, base: Any) -> Any:
    """What `base` is after a write to the first element of a view of it, or of what may be a copy."""
    view[(0,) * len(view.shape)] = 7
    return base


def numbers_of(name: str, shape: tuple[int, ...]) -> np.ndarray:
    """The numbers that a parameter of this name is set to; variances are positive."""
    low = 0.5 if "var" in name else -0.5
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return rng.uniform(low, low + 1.0, tuple(int(s) for s in shape)).astype(np.float32)


class Kit:
    """The work, for one package: `peer` makes its Tensors, `state` gives those of a model by name."""

    def __init__(self, peer: Any) -> None:
        self.peer = peer

    def state(self, model: Any) -> dict[str, Any]:
        if hasattr(model, "state_dict"):
            found = dict(model.state_dict(keep_vars=True))
        else:
            found = dict(self.peer.state_of(model))
        return {k: v for k, v in sorted(found.items()) if "num_batches" not in k}

    def filled(self, model: Any) -> Any:
        """The model with its parameters set."""
        for name, t in self.state(model).items():
            value = self.peer.make(numbers_of(name, t.shape))
            t.data.copy_(value) if hasattr(model, "state_dict") else t.assign(value).realize()
        return model

    def layer(self, model: Any, *inputs: Any, training: bool = True) -> Any:
        """The names of its parameters, its outputs, and its buffers afterwards."""
        model = self.filled(model)
        if hasattr(model, "train"):
            model.train(training)
        with self.peer.training(training):
            outs = flat(model(*inputs), self.peer)
            buffers = [t for name, t in self.state(model).items() if "running" in name]
            return [tuple(self.state(model)), *outs, *[b.detach() for b in buffers]]

    def slopes(self, model: Any, *inputs: Any) -> Any:
        """The gradients of its parameters, of the sum of the squares of its outputs."""
        model = self.filled(model)
        state = {k: t for k, t in self.state(model).items() if "running" not in k}
        with self.peer.training(True):
            total = sum((out * out).sum() for out in flat(model(*inputs), self.peer))
            for t in state.values():
                t.requires_grad = True
            return [g.detach() for g in self.peer.derivatives(total, list(state.values()))]

    def initial(self, model: Any) -> Any:
        """Mean and deviation of each parameter that a layer starts with; of few numbers, the constant."""
        found = []
        for name, t in self.state(model).items():
            mean, deviation = moments(t)
            many = int(np.prod(tuple(t.shape))) >= 1000
            found.append(
                (name, mean, deviation) if many else (name, mean if deviation == 0 else "random", 0.0)
            )
        return found

    def optimised(self, kind: Any, *arguments: Any, shapes: Any = ((4, 3), (5, 5)), **keywords: Any) -> Any:
        """Parameters after four steps with gradients that are given."""
        rng = np.random.default_rng(7)
        arrays = [rng.normal(size=s).astype(np.float32) for s in shapes]
        parameters = [self.peer.leaf(a) for a in arrays]
        optimizer = kind(parameters, *arguments, **keywords)
        with self.peer.training(True):
            for _ in range(4):
                for p, a in zip(parameters, arrays, strict=True):
                    p.grad = self.peer.make(rng.normal(size=a.shape).astype(np.float32))
                optimizer.step()
        return [p.detach() for p in parameters]

    def scheduled(self, kind: Any, *arguments: Any, steps: int = 8, **keywords: Any) -> tuple[float, ...]:
        """The learning rates of some steps."""
        parameter = self.peer.leaf(np.ones(2, np.float32))
        parameter.grad = self.peer.make(np.zeros(2, np.float32))
        optimizer = self.peer.sgd([parameter], 0.5)
        return self.rates(optimizer, kind(optimizer, *arguments, **keywords), steps)

    def rates(self, optimizer: Any, scheduler: Any, steps: int) -> tuple[float, ...]:
        found = [self.rate(optimizer)]
        for _ in range(steps):
            with self.peer.training(True):
                optimizer.step()
                scheduler.step()
            found.append(self.rate(optimizer))
        return tuple(found)

    def rate(self, optimizer: Any) -> float:
        if hasattr(optimizer, "param_groups") and optimizer.param_groups:
            rate = optimizer.param_groups[0]["lr"]
        else:
            rate = optimizer.lr
        return float(rate.item() if hasattr(rate, "item") else rate)

    def leaf(self, t: Any) -> Any:
        """A new leaf with the numbers of `t`."""
        return self.peer.leaf(self.peer.array(t))

    def model(self) -> Any:
        """An object with Tensors in an attribute, a list and a dict."""
        made = [self.peer.make(numbers_of(str(i), (2, 3))) for i in range(4)]
        return Model(made[0], [made[1], made[2]], {"d": made[3]})

    def loaded(self, load: Any) -> Any:
        """A model's Tensors after others were loaded into them."""
        model = self.model()
        names = self.state(model)
        load(
            model,
            {k: self.peer.make(np.full(t.shape, i, np.float32)) for i, (k, t) in enumerate(names.items())},
        )
        return list(self.state(model).values())

    @staticmethod
    def in_a_folder(work: Any) -> Any:
        """What `work` makes of a path that it may write to."""
        with TemporaryDirectory() as folder:
            return work(Path(folder) / "file")

    @staticmethod
    def safe_file(path: Path) -> Path:
        """A file of the format safetensors."""
        header = json.dumps({
            "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
            "b": {"dtype": "I32", "shape": [4], "data_offsets": [24, 40]},
        }).encode()  # fmt: skip
        header += b" " * (-len(header) % 8)
        data = numbers_of("a", (2, 3)).tobytes() + np.arange(4, dtype=np.int32).tobytes()
        path.write_bytes(len(header).to_bytes(8, "little") + header + data)
        return path

    @staticmethod
    def safetensors(path: Path) -> list[Any]:
        """What a file of that format says: names, dtypes and shapes, and the data of each."""
        raw = path.read_bytes()
        size = int.from_bytes(raw[:8], "little")
        header = json.loads(raw[8 : 8 + size])
        found = []
        for name, entry in sorted(header.items()):
            if name != "__metadata__":
                low, high = entry["data_offsets"]
                found.append((name, entry["dtype"], entry["shape"], raw[8 + size + low : 8 + size + high]))
        return found

    @staticmethod
    def torch_file(path: Path) -> Path:
        """What torch.save makes."""
        torch = importlib.import_module("torch")
        torch.save({"a": torch.tensor(numbers_of("a", (2, 3))), "b": torch.arange(4).view(2, 2).T}, path)
        return path

    @staticmethod
    def archive(path: Path, kind: str) -> Path:
        """A tar or zip file of two members."""
        members = {"one.txt": b"first", "two.bin": bytes(range(20))}
        if kind == "tar":
            with tarfile.open(path, "w") as tar:
                for name, data in members.items():
                    info = tarfile.TarInfo(name)
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
        else:
            with zipfile.ZipFile(path, "w") as packed:
                for name, data in members.items():
                    packed.writestr(name, data)
        return path


class Model:
    def __init__(self, weight: Any, layers: list[Any], parts: dict[str, Any]) -> None:
        self.weight, self.layers, self.parts = weight, layers, parts


def flat(out: Any, peer: Any) -> list[Any]:
    """The Tensors of nested results."""
    if isinstance(out, (tuple, list)):
        return [t for part in out for t in flat(part, peer)]
    return [out] if peer.is_tensor(out) else []
