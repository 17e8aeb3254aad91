"""The steps that soak programs consist of: random operations on tensors of any size, as text of ours and of
torch's.

An operation looks at a value of torch's (for its shape) and draws what it needs: sizes, axes, other inputs.
It gives the two expressions, in which `x` is the value and `y`, `z` are new inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Input:
    """A new input: its shape, and for integers the number that they are less than. `scale` is of floats."""

    shape: Shape
    below: int = 0
    scale: float = 1.0


@dataclass(frozen=True)
class Drawn:
    """An expression; `theirs` empty: the same text. `rough`: a result of few digits. `differentiable`: False
    for what chooses among equals, as every order of them is right."""

    ours: str
    theirs: str = ""
    inputs: tuple[Input, ...] = ()
    rough: bool = False
    differentiable: bool = True


Draw = Callable[[Random, Shape], Drawn | None]


def size(random: Random, most: int = 300) -> int:
    """Small, large, odd and round sizes alike."""
    kinds = (
        lambda: random.randint(1, 9),
        lambda: random.choice((16, 32, 64, 128, 256)),
        lambda: random.randint(10, 70),
        lambda: random.choice((15, 17, 31, 33, 63, 65, 127, 129)),
        lambda: random.randint(1, most),
    )
    return min(random.choice(kinds)(), most)


def like(random: Random, shape: Shape) -> Shape:
    """A shape that broadcasts to `shape`: it, or with axes of 1, or without the first ones."""
    how = random.randrange(4)
    if how < 2:
        return shape
    out = tuple(1 if random.random() < 0.4 else n for n in shape)
    return out[random.randint(0, len(out) - 1) :] if how == 3 and out else out


# --- element by element

UNARY = (
    "x * 0.5 + 0.25", "x.tanh()", "x.sigmoid()", "x.relu()", "(x * 0.2).exp()", "(x * x + 1).sqrt()",
    "(x.abs() + 1).log()", "x.sin()", "x.clamp(-0.7, 0.9)", "x.square() * 0.1", "1 / (x * x + 1)", "x.erf()",
    "-x", "x.abs()", "x.contiguous()",
)  # fmt: skip
FUNCTIONAL = (
    ("x.gelu()", "F.gelu(x, approximate='tanh')"), ("x.silu()", "F.silu(x)"),
    ("x.softplus()", "F.softplus(x)"), ("x.leaky_relu(0.1)", "F.leaky_relu(x, 0.1)"),
    ("x.elu()", "F.elu(x)"), ("x.hardswish()", "F.hardswish(x)"),
)  # fmt: skip
BINARY = (
    "x + y", "x - y", "x * y", "x / (y * y + 1)", "x.maximum(y)", "x.minimum(y)", "y - x", "x + y * 0.5",
    "x * y + x", "(x + 0.5) * (y - 0.5)",
)  # fmt: skip


def unary(random: Random, shape: Shape) -> Drawn:
    if random.random() < 0.3:
        return Drawn(*random.choice(FUNCTIONAL))
    return Drawn(random.choice(UNARY))


def binary(random: Random, shape: Shape) -> Drawn:
    return Drawn(random.choice(BINARY), inputs=(Input(like(random, shape)),))


def select(random: Random, shape: Shape) -> Drawn:
    mask = Input(like(random, shape), below=2)
    return Drawn("(y == 1).where(x, z)", "torch.where(y == 1, x, z)", (mask, Input(like(random, shape))))


def half(random: Random, shape: Shape) -> Drawn:
    kind = random.choice(("float16", "bfloat16"))
    return Drawn(f"x.cast('{kind}').cast(x.dtype)", f"x.to(torch.{kind}).to(x.dtype)", rough=True)


# --- reductions


def _axes(random: Random, shape: Shape) -> tuple[int, ...]:
    return tuple(i for i in range(len(shape)) if random.random() < 0.5) or (random.randrange(len(shape)),)


def reduce(random: Random, shape: Shape) -> Drawn | None:
    if not shape:
        return None
    axes, keep = _axes(random, shape), random.random() < 0.5
    scale = 1 / math.sqrt(math.prod(shape[a] for a in axes))
    text, theirs = random.choice(
        (
            (f"x.sum({axes}, keepdim={keep}) * {scale}", ""),
            (f"x.mean({axes}, keepdim={keep})", ""),
            (f"x.max({axes}, keepdim={keep})", f"x.amax({axes}, keepdim={keep})"),
            (f"x.min({axes}, keepdim={keep})", f"x.amin({axes}, keepdim={keep})"),
            (f"x.var({axes}, correction=0, keepdim={keep})", ""),
            (f"x.logsumexp({axes}, keepdim={keep})", ""),
            (f"(x * x).sum({axes}, keepdim={keep}) * {scale}", ""),
        )
    )
    return Drawn(text, theirs)


def along(random: Random, shape: Shape) -> Drawn | None:
    """What goes along an axis and keeps it."""
    if not shape:
        return None
    a = random.randrange(len(shape))
    root = 1 / math.sqrt(shape[a])
    text, theirs = random.choice(
        (
            (f"x.softmax({a})", ""), (f"x.log_softmax({a})", ""), (f"x.cumsum({a}) * {root}", ""),
            (f"x - x.mean({a}, keepdim=True)", ""), (f"x.flip({a})", ""),
            (f"x.roll({shape[a] // 3}, {a})", ""),
            (f"x.sort({a})[0]", ""), (f"x.cummax({a})[0]", ""),
            (f"x / ((x * x).sum({a}, keepdim=True) + 1).sqrt()", ""),
            (f"x.topk({max(1, shape[a] // 3)}, {a})[0]", ""),
            (f"x * x.softmax({a})", ""), (f"x.max({a}, keepdim=True) - x", f"x.amax({a}, keepdim=True) - x"),
        )
    )  # fmt: skip
    return Drawn(text, theirs, differentiable=not any(w in text for w in ("sort", "topk", "cummax")))


def normalised(random: Random, shape: Shape) -> Drawn | None:
    """Beside x: of a row of equal numbers only the rounding of its mean is left, times 3 (eps is 0.1)."""
    if len(shape) < 2:
        return None
    if random.random() < 0.5 or shape[1] % 2:
        return Drawn("x + x.layernorm(eps=0.1)", "x + F.layer_norm(x, x.shape[-1:], eps=0.1)")
    groups = random.choice([g for g in range(1, min(shape[1], 8) + 1) if shape[1] % g == 0])
    if math.prod(shape[2:]) * shape[1] // groups < 2:
        return None
    centred = "(g - g.mean(2, keepdim=True)) / (g.var(2, correction=0, keepdim=True) + 0.1).sqrt()"
    ours = f"x + (lambda g: ({centred}).reshape(x.shape))(x.reshape({shape[0]}, {groups}, -1))"
    return Drawn(ours, f"x + F.group_norm(x, {groups}, eps=0.1)")


# --- products


def product(random: Random, shape: Shape) -> Drawn | None:
    if not shape or math.prod(shape) > 60_000:
        return None
    k, n = shape[-1], size(random, 200)
    scale = 1 / math.sqrt(k)
    batch = shape[:-2] if len(shape) > 2 and random.random() < 0.3 else ()
    other = Input((*batch, k, n), scale=scale)
    return random.choice(
        (
            Drawn("x @ y", inputs=(other,)),
            Drawn("x @ y.transpose(-1, -2)", inputs=(Input((*batch, n, k), scale=scale),)),
            Drawn("(x @ y + z).relu()", inputs=(other, Input((n,)))),
        )
    )


def gram(random: Random, shape: Shape) -> Drawn | None:
    """Products of a value with itself."""
    if len(shape) < 2 or math.prod(shape) * shape[-2] > 3_000_000 or shape[-2] > 300:
        return None
    return Drawn(f"(x @ x.transpose(-1, -2)) * {1 / math.sqrt(shape[-1])}")


def attention(random: Random, shape: Shape) -> Drawn | None:
    if len(shape) < 3 or shape[-1] > 130 or math.prod(shape) > 30_000:
        return None
    keys = size(random, 130)
    causal = random.random() < 0.4
    keys = shape[-2] if causal else keys
    k, v = Input((*shape[:-2], keys, shape[-1])), Input((*shape[:-2], keys, size(random, 70)))
    text = f"scaled_dot_product_attention({{}}y, z, is_causal={causal})"
    return Drawn("x." + text.format(""), "F." + text.format("x, "), (k, v))


def convolution(random: Random, shape: Shape) -> Drawn | None:
    if len(shape) not in (3, 4) or math.prod(shape) > 40_000:
        return None
    spatial = shape[2:]
    groups = random.choice([1, 1, *(g for g in (2, 3, 4, shape[1]) if shape[1] % g == 0)])
    out = groups * random.randint(1, 2) if groups == shape[1] else groups * size(random, max(1, 48 // groups))
    kernel = tuple(random.randint(1, min(5, n)) for n in spatial)
    padding = tuple(random.randint(0, k // 2) for k in kernel)
    stride, dilation = random.choice((1, 1, 2, 3)), random.choice((1, 1, 1, 2))
    if any(dilation * (k - 1) + 1 > n + 2 * p for k, n, p in zip(kernel, spatial, padding, strict=True)):
        return None
    fan_in = shape[1] // groups * math.prod(kernel)
    weight = Input((out, shape[1] // groups, *kernel), scale=1 / math.sqrt(fan_in))
    more = f"stride={stride}, padding={padding}, dilation={dilation}, groups={groups}"
    return Drawn(f"x.conv2d(y, {more})", f"F.conv{len(spatial)}d(x, y, {more})", (weight,))


def transposed(random: Random, shape: Shape) -> Drawn | None:
    if len(shape) != 4 or math.prod(shape) > 10_000:
        return None
    kernel, stride = random.randint(1, 4), random.randint(1, 3)
    out = size(random, 16)
    weight = Input((shape[1], out, kernel, kernel), scale=1 / math.sqrt(shape[1] * kernel))
    more = f"stride={stride}, padding={random.randint(0, kernel // 2)}"
    return Drawn(f"x.conv_transpose2d(y, {more})", f"F.conv_transpose2d(x, y, {more})", (weight,))


def pooling(random: Random, shape: Shape) -> Drawn | None:
    if len(shape) != 4 or min(shape[2:]) < 3:
        return None
    kernel, stride = random.randint(2, 3), random.randint(1, 3)
    kind = random.choice(("max", "avg"))
    return Drawn(f"x.{kind}_pool2d({kernel}, {stride})", f"F.{kind}_pool2d(x, {kernel}, {stride})")


def interpolation(random: Random, shape: Shape) -> Drawn | None:
    if len(shape) != 4 or math.prod(shape) > 20_000:
        return None
    to = (random.randint(1, 40), random.randint(1, 40))
    mode = random.choice(("bilinear", "nearest"))
    return Drawn(
        f"x.interpolate({to}, mode='{'linear' if mode == 'bilinear' else mode}')",
        f"F.interpolate(x, {to}, mode='{mode}')",
    )


# --- movement


def reshape(random: Random, shape: Shape) -> Drawn:
    left, new = math.prod(shape), []
    for _ in range(random.randint(0, 3)):
        divisors = [d for d in range(1, min(left, 300) + 1) if left % d == 0]
        new.append(random.choice(divisors))
        left //= new[-1]
    new.append(left)
    random.shuffle(new)
    return Drawn(f"x.reshape({tuple(new)})")


def permute(random: Random, shape: Shape) -> Drawn:
    return Drawn(f"x.permute({tuple(random.sample(range(len(shape)), len(shape)))})")


def slice_(random: Random, shape: Shape) -> Drawn | None:
    if not shape:
        return None
    parts, kept = [], 0
    for n in shape:
        if random.random() < 0.15 and kept + 1 < len(shape):
            parts.append(str(random.randrange(n)))
            kept += 1
            continue
        start = random.randrange(n) if random.random() < 0.5 else 0
        stop = random.randint(start + 1, n) if random.random() < 0.5 else n
        parts.append(f"{start}:{stop}:{random.choice((1, 1, 1, 2, 3))}")
    return Drawn(f"x[{', '.join(parts)}]")


def pad(random: Random, shape: Shape) -> Drawn | None:
    if not shape:
        return None
    axes = random.randint(1, min(3, len(shape)))
    pairs = tuple(random.randint(0, 3) for _ in range(2 * axes))
    return Drawn(f"x.pad({pairs}, value=0.5)", f"F.pad(x, {pairs}, value=0.5)")


def join(random: Random, shape: Shape) -> Drawn | None:
    if not shape:
        return None
    a = random.randrange(len(shape))
    other = Input(tuple(size(random, 40) if i == a else n for i, n in enumerate(shape)))
    how = random.randrange(3)
    if how == 0:
        return Drawn(f"x.cat(y, dim={a})", f"torch.cat((x, y), {a})", (other,))
    if how == 1:
        return Drawn(f"y.cat(x, y, dim={a})", f"torch.cat((y, x, y), {a})", (other,))
    return Drawn(f"x.stack(x * 2, dim={a})", f"torch.stack((x, x * 2), {a})")


def expand(random: Random, shape: Shape) -> Drawn:
    a, n = random.randint(0, len(shape)), size(random, 12)
    new = (*shape[:a], n, *shape[a:])
    return Drawn(f"x.unsqueeze({a}).expand({new})")


def split(random: Random, shape: Shape) -> Drawn | None:
    """Parts of an axis, which are used apart and come together: heads, gates, rotary halves."""
    if not shape or shape[-1] % 2:
        return None
    n = shape[-1] // 2
    return random.choice(
        (
            Drawn(f"x[..., :{n}] * x[..., {n}:].sigmoid()"),
            Drawn(
                f"(-x[..., {n}:]).cat(x[..., :{n}], dim=-1)",
                f"torch.cat((-x[..., {n}:], x[..., :{n}]), -1)",
            ),
            Drawn(f"x.reshape({shape[:-1]} + ({n}, 2)).transpose(-1, -2)"),
        )
    )  # fmt: skip


def windows(random: Random, shape: Shape) -> Drawn | None:
    a = random.randrange(len(shape)) if shape else 0
    if not shape or shape[a] < 3:
        return None
    width = random.randint(2, min(5, shape[a]))
    return Drawn(f"x.unfold({a}, {width}, {random.randint(1, 3)}).sum(-1)")


# --- positions


def gather(random: Random, shape: Shape) -> Drawn | None:
    if not shape:
        return None
    a = random.randrange(len(shape))
    count = size(random, 80)
    how = random.randrange(3)
    if how == 0:
        return Drawn(
            f"x.index_select({a}, y)", f"x.index_select({a}, y.long())", (Input((count,), below=shape[a]),)
        )
    if how == 1:
        index = Input(tuple(count if i == a else n for i, n in enumerate(shape)), below=shape[a])
        return Drawn(f"x.gather({a}, y)", f"x.gather({a}, y.long())", (index,))
    return Drawn("x[y]", "x[y.long()]", (Input((size(random, 12), size(random, 12)), below=shape[0]),))


def scatter(random: Random, shape: Shape) -> Drawn | None:
    if not shape:
        return None
    rows, how = size(random, 60), random.randrange(3)
    index = Input((shape[0],), below=rows)
    zeros = f"({(rows, *shape[1:])}{{}})"
    if how == 0:
        return Drawn(
            f"Tensor.zeros{zeros.format(', device=x.device')}.index_add(0, y, x)",
            f"torch.zeros{zeros.format(', dtype=x.dtype')}.index_add(0, y.long(), x)",
            (index,),
        )
    a = random.randrange(len(shape))
    index = Input(shape, below=shape[a])
    if how == 1:
        return Drawn(f"z.scatter_add({a}, y, x)", f"z.scatter_add({a}, y.long(), x)", (index, Input(shape)))
    return Drawn(
        f"z.scatter_reduce({a}, y, x, 'amax')",
        f"z.scatter_reduce({a}, y.long(), x, 'amax')",
        (index, Input(shape)),
    )


def triangle(random: Random, shape: Shape) -> Drawn | None:
    return Drawn(f"x.{random.choice(('tril', 'triu'))}({random.randint(-2, 2)})") if len(shape) > 1 else None


OPERATIONS: dict[str, Draw] = {
    f.__name__.rstrip("_"): f
    for f in (
        unary, binary, select, half, reduce, along, normalised, product, gram, attention, convolution,
        transposed, pooling, interpolation, reshape, permute, slice_, pad, join, expand, split, windows,
        gather, scatter, triangle,
    )
}  # fmt: skip
WEIGHTS: dict[str, float] = {
    "unary": 3,
    "binary": 3,
    "reduce": 2,
    "along": 2,
    "half": 0.5,
    "product": 2,
    "convolution": 3,
}


def draw(random: Random, value: Any) -> tuple[str, Drawn] | None:
    """A random operation on a value; None where it is not one for this value."""
    name = random.choices(list(OPERATIONS), [WEIGHTS.get(n, 1) for n in OPERATIONS])[0]
    drawn = OPERATIONS[name](random, tuple(value.shape))
    return None if drawn is None else (name, drawn)
