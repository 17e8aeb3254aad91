"""Models whose training steps are exported to C, with inputs for several steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from polygrad import Tensor, TinyJit, Variable, compile_step, hf, nn
from polygrad.nn.state import get_parameters

STEPS = 20
Made = tuple[Any, list[dict[str, Any]], dict[str, Any]]  # the step, inputs by name, arguments of `save`


def floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def _trained(model: Any, optimizer: Any, loss: Callable[..., Any], inputs: list[dict[str, Any]]) -> Made:
    step = compile_step(loss, model, optimizer, *map(Tensor, inputs[0].values()))
    return step, inputs, {"inputs": list(inputs[0])}


def _classification(shape: tuple[int, ...], classes: int) -> list[dict[str, Any]]:
    rng = np.random.default_rng(1)
    out = []
    for _ in range(STEPS):
        y = rng.integers(0, classes, shape[0]).astype(np.int32)
        out.append(
            {
                "x": floats(rng, *shape) + 0.5 * y.reshape(-1, *[1] * (len(shape) - 1)).astype(np.float32),
                "y": y,
            }
        )
    return out


class _MLP:
    def __init__(self) -> None:
        self.first, self.last = nn.Linear(20, 32), nn.Linear(32, 5)

    def __call__(self, x: Tensor) -> Tensor:
        return self.last(self.first(x).relu())


def mlp() -> Made:
    model = _MLP()
    optimizer = nn.optim.AdamW(get_parameters(model), lr=0.01)
    inputs = _classification((16, 20), 5)
    return _trained(model, optimizer, lambda m, x, y: m(x).cross_entropy(y), inputs)


class _ConvNet:
    def __init__(self) -> None:
        self.first, self.second = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 12, 3, stride=2)
        self.norm = nn.BatchNorm(8)
        self.last = nn.Linear(12 * 3 * 3, 4)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.norm(self.first(x)).relu().max_pool2d(2)
        return self.last(self.second(x).gelu().flatten(1).dropout(0.1))


def convnet() -> Made:
    model = _ConvNet()
    optimizer = nn.optim.SGD(get_parameters(model), lr=0.02, momentum=0.9)
    inputs = _classification((6, 1, 15, 15), 4)

    def loss(m: Any, x: Tensor, y: Tensor) -> Any:
        scores = m(x)
        return scores.cross_entropy(y), {"accuracy": (scores.argmax(-1) == y).mean()}

    return _trained(model, optimizer, loss, inputs)


class _Block:
    """A GPT block between an embedding and a head."""

    def __init__(self, vocabulary: int, width: int, heads: int, length: int) -> None:
        self.heads = heads
        self.tokens, self.positions = nn.Embedding(vocabulary, width), Tensor.randn(length, width) * 0.02
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        # Without a bias: the gradient of the keys' is 0, so its steps would be those of rounding.
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.head = nn.Linear(width, vocabulary)

    def __call__(self, ids: Tensor) -> Tensor:
        x = self.tokens(ids) + self.positions
        batch, length, width = x.shape
        split = self.qkv(self.norm1(x)).reshape(batch, length, 3, self.heads, width // self.heads)
        q, k, v = (split[:, :, i].transpose(1, 2) for i in range(3))
        attended = q.scaled_dot_product_attention(k, v, is_causal=True).transpose(1, 2)
        x = x + self.out(attended.reshape(batch, length, width))
        x = x + self.down(self.up(self.norm2(x)).gelu())
        return self.head(x)


def gpt_block(
    vocabulary: int = 50, width: int = 32, heads: int = 4, batch: int = 2, length: int = 12
) -> Made:
    model = _Block(vocabulary, width, heads, length)
    model.positions.requires_grad = True
    optimizer = nn.optim.AdamW(get_parameters(model), lr=0.003, eps=1e-4)
    rng = np.random.default_rng(2)
    inputs = []
    for _ in range(STEPS):
        start = rng.integers(0, vocabulary, (batch, 1))
        ids = (start + np.arange(length + 1) * 3) % vocabulary
        inputs.append({"ids": ids[:, :-1].astype(np.int32), "targets": ids[:, 1:].astype(np.int32)})

    def loss(m: Any, ids: Tensor, targets: Tensor) -> Tensor:
        return m(ids).flatten(0, 1).cross_entropy(targets.flatten())

    return _trained(model, optimizer, loss, inputs)


def symbolic() -> Made:
    """A forward pass for batches of any size up to 8."""
    model = _MLP()
    rng = np.random.default_rng(3)
    sizes = [1, 8, 3, 5]
    whole = floats(rng, 8, 20)

    @TinyJit
    def classify(x: Tensor) -> dict[str, Tensor]:
        scores = model(x)
        return {"scores": scores.contiguous(), "total": scores.sum()}

    for _ in range(2):
        n = Variable("for", 1, 8).bind(4)
        classify(Tensor(whole)[:n])
    return classify, [{"x": whole[:n], "for": n} for n in sizes], {"model": model}


MINILM = {
    "architectures": ["BertModel"],
    "vocab_size": 200,
    "hidden_size": 384,
    "intermediate_size": 1536,
    "num_hidden_layers": 2,
    "num_attention_heads": 12,
    "max_position_embeddings": 64,
}


def encoder(config: dict[str, Any]) -> Made:
    """The forward pass of an encoder with the shapes of MiniLM."""
    model = hf.from_config(config)
    rng = np.random.default_rng(4)
    ids = rng.integers(0, config["vocab_size"], (1, 32)).astype(np.int32)
    mask = np.ones((1, 32), np.int32)
    mask[:, 27:] = 0

    @TinyJit
    def forward(input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        found = model.forward(input_ids=input_ids, attention_mask=attention_mask)
        return found["last_hidden_state"].mean(1)

    for _ in range(2):
        forward(Tensor(ids), Tensor(mask))
    inputs = [
        {"input_ids": ids, "attention_mask": mask},
        {"input_ids": ids[:, ::-1].copy(), "attention_mask": mask},
    ]
    return forward, inputs, {"model": model.module}


MODELS: dict[str, Callable[[], Made]] = {
    "mlp": mlp,
    "convnet": convnet,
    "gpt block": gpt_block,
    "symbolic": symbolic,
    "encoder": lambda: encoder(MINILM),
}
