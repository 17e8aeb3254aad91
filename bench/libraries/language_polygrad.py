"""polygrad on a GGUF file, whose weights stay as the file has them, through the engine that `generate` uses;
and on an encoder's folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.libraries.language import sentences_of, tokens_of
from bench.libraries.shapes import Program, spread


def make(kind: str, sizes: dict[str, Any], finish: Callable[[], Any]) -> Program:
    """See `bench.libraries.language`; `finish` waits for what was started. `read`: no model, but a sum of
    `bytes` bytes of float32, which are read once."""
    if kind == "read":
        return _reading(sizes["bytes"], finish)
    if kind == "embed":
        return _embedding(sizes, finish)
    from polygrad import Tensor, get_num_threads, hf
    from polygrad.generation.engine import Engine
    from polygrad.generation.sampling import Needs, Sampling
    from polygrad.models.cache import TokenSpan

    Tensor.training = False  # the worker's other programs are training steps, which drop out
    count = sizes["tokens"]
    *prompt, last = tokens = tokens_of(count)
    model = hf.load_hf(sizes["path"]).module
    engine = Engine(model, 1, count + 1)
    greedy, needs = Sampling(), Needs()

    def see(seen: list[int]) -> int:
        *_, draw = engine.prefill(0, seen, 0, greedy, needs)
        assert draw is not None
        return int(draw.tokens.item())

    def step() -> int:
        return see(tokens) if kind == "prefill" else int(engine.decode(count, needs).tokens.item())

    def check() -> list[float]:
        """The scores; then the Programs of a step are captured."""
        if kind == "prefill":
            shown, view = tokens, TokenSpan(engine.cache, 0, 0, count)
        else:
            see(prompt)
            shown, view = [last], TokenSpan(engine.cache, 0, count - 1, 1)
        with Tensor.no_grad():
            scores = numbers(model.next_logits(Tensor([shown], dtype="int32"), view))
        for _ in range(3):
            step()
        return scores

    return Program(step, check, finish, get_num_threads())


def _embedding(sizes: dict[str, Any], finish: Callable[[], Any]) -> Program:
    from polygrad import Tensor, get_num_threads, hf

    Tensor.training = False
    model = hf.load_hf(sizes["path"])
    sentences = sentences_of(sizes["sentences"], sizes["tokens"])

    def check() -> list[float]:
        for _ in range(3):
            out = model.embed(sentences)
        vectors = out / out.square().sum(-1, keepdim=True).sqrt()
        return numbers(vectors)

    return Program(lambda: model.embed(sentences), check, finish, get_num_threads())


def _reading(nbytes: int, finish: Callable[[], Any]) -> Program:
    from polygrad import Tensor, TinyJit, get_num_threads

    rows, columns = nbytes // (1 << 14), 1 << 12
    x = Tensor.ones(rows, columns).contiguous().realize()
    total = TinyJit(lambda x: x.sum(1).realize())

    def check() -> list[float]:
        for _ in range(3):
            out = total(x)
        return numbers(out)

    return Program(lambda: total(x), check, finish, get_num_threads())


def numbers(x: Any) -> list[float]:
    """About a thousand elements of a Tensor, evenly spread."""
    flat = x.float().flatten()
    found: list[float] = flat[spread(flat.shape[0])].tolist()
    return found
