"""Shapes and dtypes that the JavaScript API computes for a session in a worker: Python's, for every rule."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from polygrad import Tensor, nn
from polygrad.bridge import Session
from polygrad.errors import PolygradError

pytestmark = pytest.mark.e2e

HERE = Path(__file__).parent
FLOATS = ("float32", "float16", "bfloat16", "float64")
DTYPES = (*FLOATS, "int32", "uint8", "bool")


@dataclass(frozen=True)
class Call:
    """A call of the bridge. `shape`: whether its shape has to be known; `dtype`: its dtype, too."""

    name: str
    args: tuple[Any, ...]
    options: dict[str, Any] = field(default_factory=dict)
    shape: bool = True
    dtype: bool = False

    def run(self) -> list[Tensor]:
        session = Session()
        out = session._functions[self.name](*self.args, **self.options)
        return list(out) if isinstance(out, (tuple, list)) else [out]


def t(*shape: int, dtype: str = "float32") -> Tensor:
    return Tensor.zeros(*shape, dtype=dtype)


def calls(names: str, *arguments: tuple[Any, ...], **options: Any) -> Iterator[Call]:
    for name, args in itertools.product(names.split(), arguments):
        yield Call(f"Tensor.{name}", args, options)


SHAPES = ((2, 3), (), (4,), (2, 1, 3), (0, 2))
PAIRS = [
    ((2, 3), (3,)),
    ((2, 1), (1, 4)),
    ((), (2,)),
    ((0, 2), (1, 2)),
    ((3, 1, 2), (4, 1)),
]


def elementwise() -> Iterator[Call]:
    each = [(t(*shape, dtype=dtype),) for shape in SHAPES[:3] for dtype in DTYPES]
    yield from calls(
        "contiguous detach relu abs absolute neg negative as_param clone sin cos tan asin acos atan "
        "sinh cosh tanh exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square sigmoid gelu silu "
        "swish elu selu softplus mish reciprocal erf sign floor ceil round trunc leaky_relu "
        "hardswish hardtanh relu6 quick_gelu dropout logsigmoid softsign nan_to_num isnan isinf "
        "isfinite logical_not float half double int long bool zeros_like ones_like rand_like "
        "randn_like empty_like",
        *each,
    )
    yield from calls("flip cumsum", (t(2, 3), 0), (t(2, 3), 1))
    yield from calls("roll", (t(2, 3), 1, 0))
    yield from calls("fliplr flipud triu tril layernorm", (t(2, 3),))
    yield from calls("full_like", (t(2, 3), 1.0))
    yield from calls("zeros_like", (t(2, 3),), dtype="int32")
    yield from calls("softmax log_softmax", (t(2, 3),), (t(2, 3), 0), (t(2, 3, dtype="float16"), 0))
    yield from calls("softmax log_softmax", (t(2, 3), 0, "float64"))
    yield from calls("cast", *[(t(2), dtype) for dtype in (*DTYPES, "half", "long")])
    yield from calls("to", (t(2, 3), "INTERP"))
    yield from calls("clone", (t(2, 3), "INTERP"))
    yield from calls("clamp", (t(2, 3), 0, 1), (t(3), None, 2.0), (t(3, dtype="int32"), 0, 1))
    yield Call("Tensor.clamp", (t(2), t(2, 2)), shape=False)


def binary() -> Iterator[Call]:
    arithmetic = "add sub mul subtract multiply maximum minimum div divide true_divide pow mod"
    comparison = "lt gt le ge eq ne less greater less_equal greater_equal not_equal"
    names = f"{arithmetic} {comparison}"
    tensors = [(t(*a), t(*b)) for a, b in PAIRS] + [(t(*b), t(*a)) for a, b in PAIRS]
    dtypes = [(t(2, dtype=a), t(2, dtype=b)) for a, b in itertools.product(DTYPES, DTYPES)]
    numbers = [(t(2, dtype=d), n) for d in DTYPES for n in (1, 2.5)]
    lists = [(t(2, 3), [1.5, 2, 3]), (t(2, 1), [[1, 2]])]
    yield from calls(names, *tensors, *dtypes, *numbers, *lists)
    yield from calls("add", (t(2), 1), reverse=True)
    yield from calls("where", (t(2, 1, dtype="bool"), t(3), t()), (t(3, dtype="bool"), 1.0, t(2, 3)))
    yield from calls(
        "where", (t(3, dtype="bool"), t(2, 3), 0), (t(3, dtype="bool"), t(3), t(3, dtype="int32"))
    )


def reductions() -> Iterator[Call]:
    names = "max min amax amin sum prod mean logsumexp var std nansum nanmean any all"
    axes = [(t(2, 3, 4), axis) for axis in (None, 0, -1, [0, 2], [-1, 1])]
    kept = [(t(2, 3, 4), axis, True) for axis in (None, 1, [0, -1])]
    yield from calls(
        names, (t(2, 3),), (t(),), (t(3, dtype="float16"),), (t(3, dtype="int32"),), *axes, *kept
    )
    yield from calls(names, (t(2, 3),), axis=1, keepdim=True)
    yield from calls("sum prod", (t(2, 3), None, False, "float64"), (t(2, 3, dtype="bool"),))
    yield from calls("argmax argmin", (t(2, 3),), (t(2, 3), 1), (t(2, 3), -1, True))
    yield from calls("norm", (t(2, 3),), (t(2, 3), 1, 0), (t(2, 3), 2, [0, 1], True))
    y = t(2, dtype="int32")
    yield from calls("cross_entropy nll_loss", (t(2, 3), y), (t(2, 3), y, "sum"))
    yield from calls("mse_loss l1_loss binary_crossentropy binary_crossentropy_logits", (t(2, 3), t(2, 3)))
    yield Call("Tensor.cross_entropy", (t(2, 3), y), {"reduction": "none"}, shape=False)
    yield from calls("var_mean std_mean", (t(2, 3),), (t(2, 3), 1, True))
    yield from calls("sort", (t(2, 3),), (t(2, 3, dtype="int32"), 0))
    yield from calls("topk", (t(2, 3), 2), (t(4, 3), 3, 0))


def movement() -> Iterator[Call]:
    x = t(2, 3, 4)
    yield from calls(
        "reshape view", (x, 6, 4), (x, [-1]), (x, [4, -1, 2]), (x, -1, 1), (t(0, 2), 2, 0), (t(1), [])
    )
    yield from calls(
        "expand broadcast_to", (t(2, 1), 2, 3), (t(2, 1), [4, -1, 5]), (t(1), [3, 2]), (t(), [2])
    )
    yield from calls("transpose swapaxes swapdims", (x,), (x, 0, 2), (x, -1), (t(2, 3), -2, -1))
    yield from calls("permute", (x, 2, 0, 1), (x, [0, -1, 1]))
    yield from calls("t", (t(2, 3),), (t(2),), (t(),))
    yield Call("$get", (t(2, 3), "T"))
    yield from calls("squeeze", (t(1, 2, 1),), (t(1, 2, 1), 0), (t(1, 2), -1))
    yield from calls("unsqueeze", (x, 0), (x, -1), (x, 2), (t(), 0))
    yield from calls("flatten", (x,), (x, 1), (x, 0, 1), (x, -2, -1))
    yield from calls("ravel", (x,), (t(),))
    yield from calls("reshape_as", (x, t(4, 6)))
    yield from calls("expand_as", (t(3, 1), t(2, 3, 5)))
    yield from calls("repeat", (t(2, 3), 2, 1), (t(2, 3), [4, 1, 2]))
    yield from calls("pad", (t(2, 3), [None, [1, 2]]), (t(2), [[3, 0]]))
    yield Call("Tensor.pad", (t(2, 3), [1, 2]), shape=False)
    yield from calls("narrow", (t(4, 3), 0, 1, 2), (t(4, 3), -1, 0, 1))
    yield from calls("select", (x, 1, 0), (x, -1, 2))
    yield from calls("cat", (t(2, 3), t(4, 3)), (t(2, 3), t(1, 3), t(0, 3)), (t(2, dtype="int32"), t(1)))
    yield from calls("cat", (t(2, 3), t(2, 1)), dim=-1)
    yield from calls("stack", (t(2, 3), t(2, 3)))
    yield from calls("stack", (t(2, 3), t(2, 3)), dim=-1)
    yield from calls("unbind", (x,), (x, 2), (x, -2), (t(0, 2),))
    yield from calls("split", (x, 2, 2), (x, 3, -1), (x, 9), (t(0, 2), 2), (x, [1, 0, 2], 1), (t(5), [5]))
    yield from calls("chunk", (x, 2), (x, 3, 2), (x, 9, -1), (t(0, 2), 3), (t(5), 2))
    yield from calls("split", (x, 3), dim=1)
    yield from calls("one_hot", (t(2, 3, dtype="int32"), 5))
    yield Call("Tensor.gradient", (Tensor([1.0, 2.0], requires_grad=True).sum(),))


def indices() -> Iterator[Call]:
    x, rows = t(4, 5, 6), Tensor([[0, 1, 2]], dtype="int32")
    bounds = (None, 0, 1, 3, -1, -3, 9, -9)
    slices = [slice(a, b, step) for a, b in itertools.product(bounds, bounds) for step in (None, 2, -1, -2)]
    given: list[list[Any]] = [
        [0],
        [-1, 2],
        [0, 1, 2],
        [None, 0, ..., None],
        [..., 3],
        [..., slice(1, 3), 0],
        [slice(None), None, slice(2, None)],
        [rows],
        [slice(1, 3), rows],
        [[0, 2]],
        [..., [1, 1, 0]],
    ]
    for index in [*given, *([s] for s in slices)]:
        yield Call("$index", (x, index))
    for mixed in ([0, rows], [rows, rows], [rows, slice(None), rows], [t(4, dtype="bool")], [t(2)]):
        yield Call("$index", (x, mixed), shape=False)


def products() -> Iterator[Call]:
    pairs = [
        ((2, 3), (3, 4)),
        ((3,), (3, 4)),
        ((2, 3), (3,)),
        ((3,), (3,)),
        ((5, 2, 3), (3, 4)),
        ((5, 1, 2, 3), (6, 3, 4)),
    ]
    yield from calls("matmul dot mm bmm mv", *[(t(*a), t(*b)) for a, b in pairs])
    yield from calls(
        "matmul", (t(2, 2, dtype="float16"), t(2, 2)), (t(2, 2, dtype="int32"), t(2, 2, dtype="int32"))
    )
    yield Call("Tensor.matmul", (t(2, 2), t(2, 2)), {"dtype": "float64"}, shape=False)
    yield from calls("linear", (t(5, 2), t(2, 3), t(3)))
    yield Call("Tensor.linear", (t(5, 2), t(2)), shape=False)
    image = t(2, 4, 9, 8)
    for options in (
        {},
        {"stride": 2},
        {"padding": 1},
        {"dilation": 2, "padding": [1, 2]},
        {"stride": [2, 3]},
    ):
        yield Call("Tensor.conv2d", (image, t(6, 4, 3, 2)), options)
        if "dilation" not in options:
            yield from calls("max_pool2d avg_pool2d", (image, [3, 3]), **options)
    yield Call("Tensor.conv2d", (image, t(6, 2, 3, 3)), {"groups": 2})
    yield Call("Tensor.conv2d", (image, t(6, 4, 3, 2)), {"padding": [1, 2, 0, 1]}, shape=False)
    yield from calls("max_pool2d avg_pool2d", (image,), (image, 3), (image, 2, 1))
    yield Call("Tensor.max_pool2d", (image,), {"ceil_mode": True}, shape=False)
    yield from calls("scaled_dot_product_attention", (t(2, 3, 4), t(2, 5, 4), t(2, 5, 6)))


def creation() -> Iterator[Call]:
    names = "zeros ones empty rand randn normal uniform glorot_uniform kaiming_uniform randint"
    yield from calls(names, (2, 3), ([2, 3],))
    yield from calls(names.replace(" randint", ""), (2, 3), dtype="float16")
    yield from calls("full", ([2, 3], 1.0))
    yield from calls("full", ([2, 3], 1), dtype="int32", device="INTERP")
    yield from calls("arange", (5,), (2, 9), (2, 9, 3), (9, 2, -2), (3, 1))
    yield from calls("arange", (5,), dtype="float32")
    yield Call("Tensor.arange", (0.5, 3), shape=False)
    yield from calls("eye", (3,), (3, 2))
    yield from calls("eye", (3,), m=4)


def others() -> Iterator[Call]:
    """Arguments that are rare: by second names, truthy, of other dtypes, with more axes than usual."""

    def unknown(name: str, *args: Any, **options: Any) -> Call:
        return Call(name if name[0] == "$" else f"Tensor.{name}", args, options, shape=False)

    x, half = t(2, 3, 4), t(2, 3, dtype="float16")
    for name in ("sum", "max", "var", "any", "argmax"):
        yield from calls(name, (x,), axis=1, keepdim=False)
        for options in ({"dim": 1}, {"axis": 1, "keepdims": True}, {"dim": 1, "keepdim": True}):
            yield unknown(name, x, **options)
        yield unknown(name, x, 1, 1)
    yield unknown("norm", x, dim=1)
    yield unknown("var_mean", x, 1, 1)
    for name, args in (("unbind", ()), ("split", (2,)), ("chunk", (2,))):
        yield unknown(name, x, *args, axis=1)
    yield from calls("var", (x, 1), correction=0)
    yield unknown("clamp", t(3), [[0.0], [1.0]])
    yield unknown("clamp", t(3), min=t(2, 3))
    yield unknown("clamp", t(3), max=t(2, 3))
    yield from calls("clamp", (t(3),), min_=0.5)
    yield unknown("add", t(2, 3), other=t(4, 1, 1))
    yield from calls("full", ([2], True), ([2], 1))
    yield unknown("$index", t(4, 5), [[True, False, True, True]])
    yield unknown("$index", t(4, 5), [[[True] * 5] * 4])
    image = t(2, 3, 8, 8)
    yield from calls("max_pool2d avg_pool2d", (image, 3), ceil_mode=False)
    for name in ("max_pool2d", "avg_pool2d"):
        yield unknown(name, image, 3, ceil_mode=1)
        yield unknown(name, image, 3, 2, 1, 1, 1)
    biases = (t(3), t(4, 1, 3), t(3, dtype="float64"))
    yield from calls("linear", *[(t(5, 2), t(2, 3), bias) for bias in biases], (t(5, 2), t(2, 1), t(3)))
    yield from calls("linear", (t(2, 2, dtype="float16"), t(2, 3, dtype="float16")), bias=t(3))
    yield from calls("conv2d", (t(2, 4, 9, 8), t(6, 4, 3, 2)), bias=t(6, dtype="float64"))
    attention = "scaled_dot_product_attention"
    shapes = [
        ((3, 4), (2, 5, 4), (2, 5, 6)),
        ((1, 3, 4), (7, 5, 4), (7, 5, 6)),
        ((3, 4), (5, 4), (2, 5, 6)),
    ]
    yield from calls(attention, *[tuple(t(*shape) for shape in parts) for parts in shapes])
    kept, (key, value) = t(3, 4, dtype="float16"), (t(5, 4), t(5, 6))
    yield from calls(attention, (kept, key, value), (t(3, 4), key, value, t(2, 3, 5)))
    yield from calls(attention, (t(3, 4), key, value), attn_mask=t(2, 1, 5, dtype="bool"))
    losses = "mse_loss l1_loss binary_crossentropy binary_crossentropy_logits"
    yield from calls(losses, (half, t(2, 3)), (half, half), (t(2, 3), t(2, 3, dtype="float64")))
    yield from calls("nll_loss cross_entropy", (half, t(2, dtype="int32")), weight=t(3))
    yield from calls("nll_loss", (half, t(2, dtype="int32"), t(3)))


def layer(kind: Any, *args: Any, **options: Any) -> Any:
    """A layer that knows what it was constructed with."""
    made = kind(*args, **options)
    made.constructed_with = (args, options)
    return made


def layers() -> Iterator[Call]:
    def called(name: str, made: Any, *x: Tensor, shape: bool = True) -> Call:
        return Call(f"nn.{name}.__call__", (made, *x), shape=shape)

    yield called("Linear", layer(nn.Linear, 3, 4), t(5, 2, 3))
    yield called("Linear", layer(nn.Linear, 3, 4, dtype="float16"), t(2, 3))
    yield called("Embedding", layer(nn.Embedding, 10, 4), t(2, 3, dtype="int32"))
    yield called("LayerNorm", layer(nn.LayerNorm, 3), t(2, 3))
    yield called("RMSNorm", layer(nn.RMSNorm, 3), t(2, 3))
    yield called("BatchNorm", layer(nn.BatchNorm, 3), t(2, 3, 4))
    yield called("GroupNorm", layer(nn.GroupNorm, 2, 4), t(2, 4, 3))
    yield called("Conv2d", layer(nn.Conv2d, 4, 6, 3), t(2, 4, 8, 7))
    yield called("Conv2d", layer(nn.Conv2d, 4, 6, [3, 2], stride=2, padding=1), t(2, 4, 8, 7))
    yield called("Conv2d", layer(nn.Conv1d, 4, 6, 3, 2), t(2, 4, 9))
    yield called("Conv2d", layer(nn.Conv3d, 2, 3, 2), t(1, 2, 4, 5, 6))
    yield called("Conv2d", layer(nn.Conv2d, 4, 6, 3, padding="same"), t(2, 4, 8, 7), shape=False)
    yield called("Conv2d", layer(nn.Conv2d, 4, 6, 3), t(4, 4, 7), shape=False)  # one image
    yield called("Conv2d", layer(nn.Conv2d, 4, 6, [3, 3]), t(4, 4, 7, 7))


KINDS = (elementwise, binary, reductions, movement, indices, products, creation, others, layers)


def as_json(x: Any) -> Any:
    if isinstance(x, Tensor):
        return {"tensor": {"shape": x.shape, "dtype": str(x.dtype), "device": "WASM"}}
    if isinstance(x, slice):
        return {"slice": [x.start, x.stop, x.step]}
    if x is ...:
        return {"ellipsis": 0}
    if isinstance(x, (list, tuple)):
        return [as_json(y) for y in x]
    if isinstance(x, dict):
        return {k: as_json(v) for k, v in x.items()}
    return {"layer": x.constructed_with} if hasattr(x, "constructed_with") else x


def inferred(chosen: list[Call]) -> dict[str, Any]:
    text = json.dumps([[c.name, as_json(c.args), as_json(c.options)] for c in chosen])
    command = ["node", str(HERE / "infer.mjs")]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


@pytest.fixture
def all_calls() -> list[Call]:
    """Tensors that live as long as this module would be in the way of other tests' captures."""
    return [call for kind in KINDS for call in kind()]


def test_every_rule_has_a_call(all_calls: list[Call]) -> None:
    assert set(inferred(all_calls)["names"]) == {call.name for call in all_calls}


def test_what_is_known_of_a_result_is_what_python_has(all_calls: list[Call]) -> None:
    wrong, compared, dtypes = [], 0, 0
    for call, results in zip(all_calls, inferred(all_calls)["results"], strict=True):
        try:
            tensors = call.run()
        except PolygradError:
            continue  # a dtype that the operation does not take
        for known, tensor in zip(results, tensors, strict=False):
            known = known or {}
            compared += "shape" in known
            dtypes += "dtype" in known
            if "shape" in known and known["shape"] != list(tensor.shape):
                wrong.append((call, "shape", known["shape"], tensor.shape))
            if "dtype" in known and known["dtype"] != str(tensor.dtype):
                wrong.append((call, "dtype", known["dtype"], tensor.dtype))
            if "device" in known and known["device"] != "WASM":
                wrong.append((call, "device", known["device"], tensor.device))
        if results and len(results) != len(tensors):
            wrong.append((call, "count", len(results), len(tensors)))
        if call.shape != all("shape" in (known or {}) for known in results or [None] * len(tensors)):
            wrong.append((call, "known", results, [x.shape for x in tensors]))
    assert not wrong, "\n".join(map(str, wrong[:20]))
    assert compared > 1500 and dtypes > 1000


def test_unknown_arguments_have_unknown_results() -> None:
    (result,) = inferred([Call("Tensor.add", ({"nothing": 1}, 1))])["results"]
    assert result == [{}]
