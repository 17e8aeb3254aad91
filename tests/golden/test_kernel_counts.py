"""How many kernels composite operations take, optimised and not: a table to be reviewed when it changes."""

from __future__ import annotations

from collections.abc import Callable

from polygrad import Tensor, nn
from polygrad.engine.normalize import normalize
from polygrad.engine.write_hazards import stored_node
from polygrad.uop.node import UOp
from tests.schedules import schedule


def data(*shape: int, dtype: str = "float32") -> Tensor:
    return Tensor.zeros(*shape, dtype=dtype, device="INTERP").contiguous().realize()


def gradients(f: Callable[..., Tensor], *xs: Tensor) -> list[Tensor]:
    return list(f(*xs).square().sum().gradient(*xs))


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return q.scaled_dot_product_attention(k, v)


def batchnorm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    invstd = (x.var((0, 2, 3), correction=0) + 1e-5).rsqrt()
    return x.batchnorm(w, b, x.mean((0, 2, 3)), invstd)


def adam_step() -> list[Tensor]:
    w = data(64, 32)
    w.requires_grad = True
    optimizer = nn.optim.Adam([w])
    w.grad = data(64, 32)
    with Tensor.train():
        return optimizer.schedule_step()


IMAGE, ROWS, INDEX = (4, 8, 9, 9), (64, 96), (64,)
OPERATIONS: dict[str, Callable[[], list[Tensor]]] = {
    "softmax": lambda: [data(*ROWS).softmax()],
    "softmax, gradient": lambda: gradients(lambda x: x.softmax(), data(*ROWS)),
    "log_softmax": lambda: [data(*ROWS).log_softmax()],
    "logsumexp": lambda: [data(*ROWS).logsumexp(1)],
    "layernorm": lambda: [data(*ROWS).layernorm()],
    "layernorm, gradient": lambda: gradients(lambda x: x.layernorm(), data(*ROWS)),
    "batchnorm": lambda: [batchnorm(data(*IMAGE), data(8), data(8))],
    "batchnorm, gradients": lambda: gradients(batchnorm, data(*IMAGE), data(8), data(8)),
    "attention": lambda: [attention(*[data(2, 4, 32, 16) for _ in range(3)])],
    "attention, gradients": lambda: gradients(attention, *[data(2, 4, 32, 16) for _ in range(3)]),
    "cross_entropy": lambda: [data(*ROWS).cross_entropy(data(*INDEX, dtype="int32"))],
    "cross_entropy, gradient": lambda: gradients(
        lambda x: x.cross_entropy(data(*INDEX, dtype="int32")), data(*ROWS)
    ),
    "linear and relu, gradients": lambda: gradients(
        lambda x, w, b: x.linear(w, b).relu(), data(*ROWS), data(96, 32), data(32)
    ),
    "conv2d": lambda: [data(*IMAGE).conv2d(data(8, 8, 3, 3), padding=1)],
    "conv2d, gradients": lambda: gradients(
        lambda x, w: x.conv2d(w, padding=1), data(*IMAGE), data(8, 8, 3, 3)
    ),
    "max_pool2d": lambda: [data(*IMAGE).max_pool2d(3)],
    "max_pool2d, gradient": lambda: gradients(lambda x: x.max_pool2d(3), data(*IMAGE)),
    "var and mean": lambda: list(data(*ROWS).var_mean(1)),
    "argmax": lambda: [data(*ROWS).argmax(1)],
    "cumsum": lambda: [data(*ROWS).cumsum(1)],
    "cumsum of a long row": lambda: [data(1 << 20).cumsum()],
    "cummax": lambda: list(data(*ROWS).cummax(1)),
    "sort of 96": lambda: list(data(*ROWS).sort()),
    "topk of 4": lambda: list(data(*ROWS).topk(4)),
    "gather": lambda: [data(*ROWS)[data(*INDEX, dtype="int32")]],
    "gather, gradient": lambda: gradients(lambda x: x[data(*INDEX, dtype="int32")], data(*ROWS)),
    "scatter": lambda: [data(*ROWS).scatter(0, data(*ROWS, dtype="int32"), data(*ROWS))],
    "scatter_reduce": lambda: [data(*ROWS).scatter_reduce(0, data(*ROWS, dtype="int32"), data(*ROWS), "sum")],
    "einsum of three": lambda: [Tensor.einsum("ij,jk,kl->il", data(8, 16), data(16, 32), data(32, 8))],
    "cat": lambda: [data(*ROWS).cat(data(*ROWS), data(*ROWS))],
    "erf": lambda: [data(*ROWS).erf()],
    "inv of 8 by 8": lambda: [data(8, 8).inv()],
    "qr of 8 by 8": lambda: list(data(8, 8).qr()),
    "cholesky of 8 by 8": lambda: [data(8, 8).cholesky()],
    "svd of 8 by 8": lambda: list(data(8, 8).svd()),
    "rfft of 64": lambda: [data(4, 64).rfft()],
    "adam": adam_step,
}  # fmt: skip


def count(name: str, optimised: bool) -> int:
    sink = normalize(UOp.sink(*[stored_node(t.uop) for t in OPERATIONS[name]()])).sink
    return len(schedule(sink, optimised).calls)


def test_kernel_counts(golden: Callable[[str, str], None]) -> None:
    lines = [f"{'':<28} optimised  plain"]
    lines += [f"{name:<28} {count(name, True):>9} {count(name, False):>6}" for name in OPERATIONS]
    golden("kernel_counts.txt", "\n".join(lines))
