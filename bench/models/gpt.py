"""A GPT written once against the Tensor API that polygrad and tinygrad share.

`lib` is the package itself: the module `polygrad` or `tinygrad`. Pre-norm blocks as in GPT-2 (Radford et al.
2019): one fused query-key-value projection, causal attention, a four-fold GELU layer, learned positions, an
untied head. Layer normalisation and attention are spelled out in elementwise operations, reductions and
matmuls, so both libraries are given the same program. Weights come from Python's own generator: making them
warms no compiler.
"""

import random
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Config:
    layers: int = 12
    width: int = 64
    heads: int = 4
    length: int = 64
    vocabulary: int = 256
    batch: int = 4


class Norm:
    def __init__(self, make: "Weights", width: int) -> None:
        self.weight, self.bias = make.constant(1.0, width), make.constant(0.0, width)

    def __call__(self, x: Any) -> Any:
        centred = x - x.mean(axis=-1, keepdim=True)
        variance = (centred * centred).mean(axis=-1, keepdim=True)
        return centred * (variance + 1e-5).rsqrt() * self.weight + self.bias


class Linear:
    def __init__(self, make: "Weights", inputs: int, outputs: int) -> None:
        self.weight, self.bias = make.normal(0.02, inputs, outputs), make.constant(0.0, outputs)

    def __call__(self, x: Any) -> Any:
        return x @ self.weight + self.bias


class Block:
    def __init__(self, make: "Weights", c: Config) -> None:
        self.c = c
        self.norm1, self.norm2 = Norm(make, c.width), Norm(make, c.width)
        self.qkv, self.project = Linear(make, c.width, 3 * c.width), Linear(make, c.width, c.width)
        self.widen, self.narrow = Linear(make, c.width, 4 * c.width), Linear(make, 4 * c.width, c.width)

    def attention(self, x: Any, mask: Any) -> Any:
        batch, length, width = x.shape
        head = width // self.c.heads
        qkv = self.qkv(x).reshape(batch, length, 3, self.c.heads, head).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        scores = mask.where(q @ k.transpose(-2, -1) * head**-0.5, float("-inf")).softmax(-1)
        return self.project((scores @ v).permute(0, 2, 1, 3).reshape(batch, length, width))

    def __call__(self, x: Any, mask: Any) -> Any:
        x = x + self.attention(self.norm1(x), mask)
        return x + self.narrow(self.widen(self.norm2(x)).gelu())


class GPT:
    def __init__(self, lib: Any, c: Config, seed: int = 0) -> None:
        make = Weights(lib, seed)
        self.lib, self.c = lib, c
        self.tokens = make.normal(0.02, c.vocabulary, c.width)
        self.positions = make.normal(0.02, c.length, c.width)
        self.blocks = [Block(make, c) for _ in range(c.layers)]
        self.norm, self.head = Norm(make, c.width), Linear(make, c.width, c.vocabulary)
        self.parameters = make.made

    def __call__(self, ids: Any) -> Any:
        """Logits `(batch, length, vocabulary)` of token ids `(batch, length)`."""
        arange, length = self.lib.Tensor.arange, self.c.length
        one_hot = (ids.unsqueeze(-1) == arange(self.c.vocabulary)).cast("float32")
        x = one_hot @ self.tokens + self.positions
        mask = arange(length).reshape(length, 1) >= arange(length).reshape(1, length)
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.norm(x))

    def loss(self, ids: Any, targets: Any) -> Any:
        """Mean cross-entropy of `targets` `(batch, length)`."""
        logits = self(ids).reshape(-1, self.c.vocabulary)
        return logits.sparse_categorical_crossentropy(targets.reshape(-1))


class Weights:
    """Makes realized parameters from Python floats and remembers them in order."""

    def __init__(self, lib: Any, seed: int) -> None:
        self.lib, self.random, self.made = lib, random.Random(seed), list[Any]()

    def normal(self, scale: float, rows: int, columns: int) -> Any:
        """`(rows, columns)` of mean 0 and standard deviation `scale` (uniform: cheap, and as good here)."""
        bound = scale * 3**0.5
        draw = self.random.random
        return self._keep([(2 * draw() - 1) * bound for _ in range(rows * columns)], rows, columns)

    def constant(self, value: float, size: int) -> Any:
        return self._keep([value] * size, size)

    def _keep(self, values: list[float], *shape: int) -> Any:
        tensor = self.lib.Tensor(values, dtype="float32").reshape(*shape).realize()
        self.made.append(tensor)
        return tensor


def tokens(lib: Any, c: Config, seed: int) -> Any:
    """Random token ids `(batch, length)`, int32, realized."""
    draw = random.Random(seed).randrange
    rows = [[draw(c.vocabulary) for _ in range(c.length)] for _ in range(c.batch)]
    return lib.Tensor(rows, dtype="int32").realize()
