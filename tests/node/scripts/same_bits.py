"""Small programs over the WASM device; prints the bytes of their results. No NaN: its bits vary."""

import json
from collections.abc import Callable

from polygrad import Device, Tensor, dtypes, nn

CASES: dict[str, Callable[[], Tensor]] = {}


def case(make: Callable[[], Tensor]) -> Callable[[], Tensor]:
    CASES[make.__name__] = make
    return make


def ramp(*shape: int) -> Tensor:
    n = 1
    for s in shape:
        n *= s
    return Tensor([((i * 37) % 101 - 50) / 16 for i in range(n)]).reshape(*shape)


@case
def elementwise() -> Tensor:
    x = ramp(5, 7)
    return (x * x + 1).sqrt().exp2().log2() + x.sin() * x.sigmoid() - (x > 0).where(x, -x)


@case
def matmul() -> Tensor:
    return ramp(13, 17) @ ramp(17, 11)


@case
def softmax() -> Tensor:
    return ramp(9, 33).softmax(axis=1)


@case
def reductions() -> Tensor:
    x = ramp(6, 50)
    return Tensor.cat(x.sum(axis=1), x.max(axis=1), x.mean(axis=1), x.var(axis=1))


@case
def movement() -> Tensor:
    x = ramp(4, 6, 5)
    return x.permute(2, 0, 1)[1:4, ::-1, 2:].pad(((1, 0), (0, 2), (1, 1))).contiguous()


@case
def random() -> Tensor:
    Tensor.manual_seed(7)
    return Tensor.cat(Tensor.rand(100), Tensor.randn(100))


@case
def training() -> Tensor:
    Tensor.manual_seed(3)
    layer = nn.Linear(8, 4)
    optimizer = nn.optim.Adam(nn.state.get_parameters(layer), lr=0.01)
    with Tensor.train():
        for _ in range(3):
            optimizer.zero_grad()
            ((layer(ramp(16, 8)) - 1) ** 2).mean().backward()
            optimizer.step()
    return layer.weight


def dtype_case(dtype: str) -> Callable[[], Tensor]:
    def make() -> Tensor:
        x = Tensor(list(range(70)), dtype=dtype)
        return (x * 3 + (x > 30).cast(dtype)).reshape(7, 10).sum(axis=0)

    return make


for dtype in dtypes.all:
    if dtype != "bool":
        CASES[f"dtype_{dtype}"] = dtype_case(dtype)

print(
    json.dumps(
        {name: bytes(make().data().cast("B")).hex() for name, make in CASES.items()}
        | {"device": Device.DEFAULT}
    )
)
