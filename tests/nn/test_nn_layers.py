"""Every layer against torch's: outputs, all gradients, state dicts both ways, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch
from device_suite import CPU_FIRST

from polygrad import Tensor, compile_step, nn
from polygrad.errors import ArgumentError, DTypeError, ShapeError
from polygrad.nn.state import get_state_dict, load_state_dict
from polygrad.uop.ops import Ops

pytestmark = pytest.mark.usefixtures("default_device")


@dataclass
class Case:
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    shapes: tuple[tuple[int, ...], ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    training: bool = False
    integers: int = 0  # inputs are integers below it


class TorchLayerNorm2d(torch.nn.LayerNorm):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


def encoder(**kwargs: Any) -> torch.nn.Module:
    return torch.nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True, **kwargs)


MASK = np.array([[False, True, False], [False, False, True], [True, False, False], [False, False, False]])
PADDING = np.array([[False, False, True], [True, False, False]])
ADDED = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
HEADS = np.random.default_rng(5).random((4, 4, 3)) > 0.7
SQUARE = np.triu(np.ones((5, 5), bool), 2)
ATTENTION = ((4, 2, 8), (3, 2, 8), (3, 2, 8))
STATE = np.random.default_rng(6).normal(size=(2, 3, 4)).astype(np.float32)

CASES = {
    "linear": Case(lambda: nn.Linear(4, 3), lambda: torch.nn.Linear(4, 3), ((2, 5, 4),)),
    "linear_no_bias": Case(lambda: nn.Linear(4, 3, False), lambda: torch.nn.Linear(4, 3, False), ((4,),)),
    "bilinear": Case(lambda: nn.Bilinear(3, 4, 5), lambda: torch.nn.Bilinear(3, 4, 5), ((2, 3), (2, 4))),
    "bilinear_axes": Case(
        lambda: nn.Bilinear(3, 2, 4, bias=False),
        lambda: torch.nn.Bilinear(3, 2, 4, bias=False),
        ((2, 5, 3), (2, 5, 2)),
    ),
    "embedding": Case(lambda: nn.Embedding(7, 3), lambda: torch.nn.Embedding(7, 3), ((2, 5),), integers=7),
    "conv1d": Case(lambda: nn.Conv1d(4, 6, 3), lambda: torch.nn.Conv1d(4, 6, 3), ((2, 4, 9),)),
    "conv1d_all": Case(
        lambda: nn.Conv1d(4, 6, 3, 2, 1, 2, 2, False),
        lambda: torch.nn.Conv1d(4, 6, 3, 2, 1, 2, 2, False),
        ((2, 4, 9),),
    ),
    "conv1d_same": Case(
        lambda: nn.Conv1d(2, 3, 4, padding="same", dilation=2),
        lambda: torch.nn.Conv1d(2, 3, 4, padding="same", dilation=2),
        ((2, 2, 9),),
    ),
    "conv1d_no_batch": Case(lambda: nn.Conv1d(2, 3, 2), lambda: torch.nn.Conv1d(2, 3, 2), ((2, 5),)),
    "conv2d": Case(
        lambda: nn.Conv2d(4, 4, (3, 2), (2, 1), (1, 0), groups=2),
        lambda: torch.nn.Conv2d(4, 4, (3, 2), (2, 1), (1, 0), groups=2),
        ((2, 4, 6, 5),),
    ),
    "conv2d_valid": Case(
        lambda: nn.Conv2d(2, 3, 3, padding="valid"),
        lambda: torch.nn.Conv2d(2, 3, 3, padding="valid"),
        ((2, 4, 4),),
    ),
    "conv3d": Case(
        lambda: nn.Conv3d(2, 4, 2, padding=1, stride=(1, 2, 1)),
        lambda: torch.nn.Conv3d(2, 4, 2, padding=1, stride=(1, 2, 1)),
        ((2, 2, 3, 4, 3),),
    ),
    "conv3d_same": Case(
        lambda: nn.Conv3d(1, 2, (1, 2, 3), padding="same"),
        lambda: torch.nn.Conv3d(1, 2, (1, 2, 3), padding="same"),
        ((1, 1, 2, 3, 4),),
    ),
    "transposed1d": Case(
        lambda: nn.ConvTranspose1d(4, 6, 3, 2, 1, 1, groups=2),
        lambda: torch.nn.ConvTranspose1d(4, 6, 3, 2, 1, 1, groups=2),
        ((2, 4, 5),),
    ),
    "transposed2d": Case(
        lambda: nn.ConvTranspose2d(3, 2, (3, 2), (2, 1), (1, 0), (1, 0), bias=False),
        lambda: torch.nn.ConvTranspose2d(3, 2, (3, 2), (2, 1), (1, 0), (1, 0), bias=False),
        ((2, 3, 3, 4),),
    ),
    "transposed2d_dilated": Case(
        lambda: nn.ConvTranspose2d(2, 2, 2, dilation=2),
        lambda: torch.nn.ConvTranspose2d(2, 2, 2, dilation=2),
        ((2, 3, 3),),
    ),
    "transposed3d": Case(
        lambda: nn.ConvTranspose3d(2, 1, 2, stride=2),
        lambda: torch.nn.ConvTranspose3d(2, 1, 2, stride=2),
        ((1, 2, 2, 2, 3),),
    ),
    "batchnorm_training": Case(
        lambda: nn.BatchNorm(3), lambda: torch.nn.BatchNorm2d(3), ((4, 3, 2, 3),), training=True
    ),
    "batchnorm_running": Case(lambda: nn.BatchNorm(3), lambda: torch.nn.BatchNorm1d(3), ((4, 3, 5),)),
    "layernorm": Case(lambda: nn.LayerNorm((3, 4)), lambda: torch.nn.LayerNorm((3, 4)), ((2, 3, 4),)),
    "layernorm2d": Case(lambda: nn.LayerNorm2d(3), lambda: TorchLayerNorm2d(3), ((2, 3, 4, 5),)),
    "groupnorm": Case(lambda: nn.GroupNorm(2, 4), lambda: torch.nn.GroupNorm(2, 4), ((2, 4, 3, 3),)),
    "instancenorm": Case(
        lambda: nn.InstanceNorm(3), lambda: torch.nn.InstanceNorm1d(3, affine=True), ((2, 3, 6),)
    ),
    "rmsnorm": Case(lambda: nn.RMSNorm(6), lambda: torch.nn.RMSNorm(6, eps=1e-6), ((2, 3, 6),)),
    "rmsnorm_axes": Case(
        lambda: nn.RMSNorm((2, 3), eps=0.1), lambda: torch.nn.RMSNorm((2, 3), eps=0.1), ((4, 2, 3),)
    ),
    "lstm_cell": Case(lambda: nn.LSTMCell(5, 4), lambda: torch.nn.LSTMCell(5, 4), ((3, 5),)),
    "lstm_cell_state": Case(
        lambda: nn.LSTMCell(5, 4, bias=False),
        lambda: torch.nn.LSTMCell(5, 4, bias=False),
        ((3, 5),),
        {"hx": (STATE[0], STATE[1])},
    ),
    "lstm": Case(lambda: nn.LSTM(5, 4), lambda: torch.nn.LSTM(5, 4), ((4, 3, 5),)),
    "lstm_all": Case(
        lambda: nn.LSTM(5, 4, 2, batch_first=True, bidirectional=True),
        lambda: torch.nn.LSTM(5, 4, 2, batch_first=True, bidirectional=True),
        ((2, 3, 5),),
    ),
    "lstm_state": Case(
        lambda: nn.LSTM(5, 4, 2, bias=False),
        lambda: torch.nn.LSTM(5, 4, 2, bias=False),
        ((2, 3, 5),),
        {"hx": (STATE, -STATE)},
    ),
    "lstm_no_batch": Case(lambda: nn.LSTM(5, 4), lambda: torch.nn.LSTM(5, 4), ((3, 5),)),
    "gru": Case(lambda: nn.GRU(5, 4), lambda: torch.nn.GRU(5, 4), ((4, 3, 5),)),
    "gru_all": Case(
        lambda: nn.GRU(5, 4, 2, batch_first=True, bidirectional=True),
        lambda: torch.nn.GRU(5, 4, 2, batch_first=True, bidirectional=True),
        ((2, 3, 5),),
    ),
    "gru_state": Case(
        lambda: nn.GRU(5, 4, 2, False), lambda: torch.nn.GRU(5, 4, 2, False), ((3, 3, 5),), {"hx": STATE}
    ),
    "gru_one_step": Case(lambda: nn.GRU(5, 4), lambda: torch.nn.GRU(5, 4), ((1, 5),)),
    "attention": Case(
        lambda: nn.MultiheadAttention(8, 2), lambda: torch.nn.MultiheadAttention(8, 2), ATTENTION
    ),
    "attention_sizes": Case(
        lambda: nn.MultiheadAttention(8, 4, kdim=5, vdim=3, bias=False),
        lambda: torch.nn.MultiheadAttention(8, 4, kdim=5, vdim=3, bias=False),
        ((4, 2, 8), (3, 2, 5), (3, 2, 3)),
    ),
    "attention_batch_first": Case(
        lambda: nn.MultiheadAttention(8, 2, batch_first=True),
        lambda: torch.nn.MultiheadAttention(8, 2, batch_first=True),
        ((2, 4, 8), (2, 3, 8), (2, 3, 8)),
        {"average_attn_weights": False},
    ),
    "attention_no_batch": Case(
        lambda: nn.MultiheadAttention(8, 2),
        lambda: torch.nn.MultiheadAttention(8, 2),
        ((4, 8), (3, 8), (3, 8)),
        {"attn_mask": MASK},
    ),
    "attention_masks": Case(
        lambda: nn.MultiheadAttention(8, 2),
        lambda: torch.nn.MultiheadAttention(8, 2),
        ATTENTION,
        {"attn_mask": MASK & False, "key_padding_mask": PADDING},
    ),
    "attention_added": Case(
        lambda: nn.MultiheadAttention(8, 2),
        lambda: torch.nn.MultiheadAttention(8, 2),
        ATTENTION,
        {"attn_mask": ADDED, "need_weights": False},
    ),
    "attention_mask_of_each_head": Case(
        lambda: nn.MultiheadAttention(8, 2),
        lambda: torch.nn.MultiheadAttention(8, 2),
        ATTENTION,
        {"attn_mask": HEADS},
    ),
    "block": Case(
        lambda: nn.TransformerBlock(8, 2, 12),
        lambda: encoder(activation="gelu", norm_first=True),
        ((2, 5, 8),),
    ),
    "block_original": Case(
        lambda: nn.TransformerBlock(8, 2, 12, activation="relu", norm_first=False),
        lambda: encoder(),
        ((2, 5, 8),),
    ),
    "block_no_bias": Case(
        lambda: nn.TransformerBlock(8, 2, 12, bias=False, activation=Tensor.relu),
        lambda: encoder(norm_first=True, bias=False),
        ((2, 5, 8),),
    ),
    "block_mask": Case(
        lambda: nn.TransformerBlock(8, 2, 12),
        lambda: encoder(activation="gelu", norm_first=True),
        ((2, 5, 8),),
        {"src_mask": SQUARE},
    ),
}  # fmt: skip
OWN_NAMES = {"hx": ("hc", "h"), "src_mask": ("attn_mask",)}


def flat(x: Any) -> list[Any]:
    if isinstance(x, (tuple, list)):
        return [leaf for part in x for leaf in flat(part)]
    return [] if x is None else [x]


def mapped(f: Callable[[Any], Any], x: Any) -> Any:
    return (
        tuple(mapped(f, y) for y in x) if isinstance(x, tuple) else f(x) if isinstance(x, np.ndarray) else x
    )


def own_keywords(case: Case, layer: Any) -> dict[str, Any]:
    names = layer.__call__.__code__.co_varnames
    return {
        next((n for n in OWN_NAMES.get(k, (k,)) if n in names), k): mapped(Tensor, v)
        for k, v in case.kwargs.items()
    }


def inputs_of(case: Case) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    if case.integers:
        return [rng.integers(0, case.integers, s) for s in case.shapes]
    return [rng.normal(size=s).astype(np.float32) for s in case.shapes]


@pytest.mark.parametrize("name", CASES)
def test_layers_agree_with_torch_within_2e_5(device, name):
    case = CASES[name]
    torch.manual_seed(3)
    ours, theirs = case.ours(), case.theirs()
    with torch.no_grad():  # ones and zeros would hide a weight in the wrong place
        for p in theirs.parameters():
            p.copy_(torch.randn(p.shape) * 0.5)
    theirs.train(case.training)
    state = {k: Tensor(v.detach().numpy()) for k, v in theirs.state_dict().items()}
    load_state_dict(ours, state)
    arrays = inputs_of(case)
    x = [Tensor(a, requires_grad=None if case.integers else True) for a in arrays]
    x_torch = [torch.tensor(a, requires_grad=not case.integers) for a in arrays]
    with Tensor.train(case.training):
        got = flat(ours(*x, **own_keywords(case, ours)))
        keywords = {k: mapped(torch.tensor, v) for k, v in case.kwargs.items()}
        want = flat(theirs(*x_torch, **keywords))
        assert [t.shape for t in got] == [tuple(t.shape) for t in want]
        sum((t * (i + 1)).sin().sum() for i, t in enumerate(got)).backward()
        sum((t * (i + 1)).sin().sum() for i, t in enumerate(want)).backward()
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=2e-5, atol=2e-5)
    own = get_state_dict(ours)
    for key, p in theirs.named_parameters():
        np.testing.assert_allclose(own[key].grad.numpy(), p.grad.numpy(), rtol=2e-5, atol=5e-5, err_msg=key)
    if not case.integers:
        for a, b in zip(x, x_torch, strict=True):
            np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=2e-5, atol=5e-5)
    for key, value in theirs.state_dict().items():  # BatchNorm's statistics too
        np.testing.assert_allclose(own[key].numpy(), value.numpy(), rtol=1e-5, atol=1e-6, err_msg=key)


def test_a_linear_layer_reads_its_weight_as_it_lies():
    layer = nn.Linear(3, 5)
    out = layer(Tensor.ones(2, 4, 3).realize())
    ops = [n.op for n in out.uop.toposort()]
    assert Ops.PERMUTE not in ops and Ops.NOOP not in ops
    assert np.allclose(out.numpy(), np.ones((2, 4, 3)) @ layer.weight.numpy().T + layer.bias.numpy())


def test_a_linear_layer_says_what_weight_it_wants():
    message = r"linear: expected a weight of 4 columns for the input's shape \(2, 4\), got \(5, 3\)$"
    with pytest.raises(ShapeError, match=message):
        nn.Linear(3, 5)(Tensor.ones(2, 4))


@pytest.mark.parametrize("name", CASES)
def test_own_weights_load_into_torchs_layer(name):
    case = CASES[name]
    ours, theirs = case.ours(), case.theirs()
    theirs.load_state_dict({k: torch.tensor(v.numpy()) for k, v in get_state_dict(ours).items()})
    theirs.train(case.training)
    arrays = inputs_of(case)
    with Tensor.train(case.training):
        got = flat(ours(*map(Tensor, arrays), **own_keywords(case, ours)))
    want = flat(
        theirs(*map(torch.tensor, arrays), **{k: mapped(torch.tensor, v) for k, v in case.kwargs.items()})
    )
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=2e-5, atol=2e-5)


def test_initial_weights_are_spread_as_torchs():
    Tensor.manual_seed(1)
    torch.manual_seed(1)
    compared = 0
    for name, case in CASES.items():
        own = get_state_dict(case.ours())
        for key, value in case.theirs().state_dict().items():
            if value.numel() < 24 or name == "embedding":  # tinygrad's embedding is narrower than torch's
                continue
            got, want = own[key].float().std().item(), value.float().std().item()
            assert 0.7 * want <= got <= 1.4 * want, (name, key, got, want)
            compared += 1
    assert compared > 40


def test_causal_attention_is_a_mask_of_what_comes_later():
    layer, x = nn.MultiheadAttention(8, 2, batch_first=True), Tensor.randn(2, 5, 8)
    mask = Tensor.ones(5, 5).triu(1).bool()
    got, weights = layer(x, x, x, is_causal=True)
    want, _ = layer(x, x, x, attn_mask=mask)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)
    assert not np.triu(weights.numpy(), 1).any()


@pytest.mark.parametrize(
    "make",
    [
        lambda: nn.TransformerBlock(8, 2, 8, dropout=0.5),
        lambda: nn.LSTM(8, 8, 2, dropout=0.5),
        lambda: nn.GRU(8, 8, 2, dropout=0.5),
        lambda: nn.MultiheadAttention(8, 2, dropout=0.5),
    ],
)
def test_dropout_drops_in_training_only(make):
    layer, x = make(), Tensor.randn(3, 2, 8)
    args = (x, x, x) if isinstance(layer, nn.MultiheadAttention) else (x,)
    first, second = (flat(layer(*args))[0].numpy() for _ in range(2))
    assert (first == second).all()
    with Tensor.train():
        first, second = (flat(layer(*args))[0].numpy() for _ in range(2))
    assert (first != second).any()


class Everything:
    """One of each kind of layer, in a row."""

    def __init__(self):
        self.embedding, self.block = nn.Embedding(7, 8), nn.TransformerBlock(8, 2, 8)
        self.lstm, self.gru = nn.LSTM(8, 4), nn.GRU(4, 4)
        self.conv, self.norm, self.up = nn.Conv1d(6, 4, 3), nn.GroupNorm(2, 4), nn.ConvTranspose1d(4, 2, 2, 2)
        self.rms, self.last = nn.RMSNorm(4), nn.Bilinear(4, 4, 3)

    def __call__(self, x):
        x = self.block(self.embedding(x), is_causal=True)
        x = self.gru(self.lstm(x)[0])[0]  # (2, 6, 4)
        x = self.rms(self.up(self.norm(self.conv(x)).relu()))  # (2, 2, 4)
        return self.last(x[:, 0], x[:, 1])


@pytest.mark.parametrize("device", CPU_FIRST)
def test_captured_steps_of_all_layers_are_bit_identical_to_the_eager_loop(device):
    x, y = Tensor([[0, 1, 2, 3, 4, 5], [6, 5, 4, 3, 2, 1]]), Tensor([0, 2])
    losses = []
    for captured in (False, True):
        Tensor.manual_seed(2)
        model = Everything()
        opt = nn.optim.Adam(nn.state.get_parameters(model), 0.01)
        losses.append([])
        step = compile_step(lambda m, a, b: m(a).cross_entropy(b), model, opt, x, y) if captured else None
        for _ in range(3):
            if step is not None:
                step.run(x, y)
                losses[-1].append(step.loss_value())
                continue
            with Tensor.train():
                opt.zero_grad()
                loss = model(x).cross_entropy(y)
                loss.backward()
                opt.step()
            losses[-1].append(loss.item())
    assert losses[0] == losses[1] and losses[0][2] < losses[0][0]


X = (2, 4, 6, 6)
REFUSED = {
    "conv_groups": (lambda: nn.Conv2d(4, 6, 3, groups=4), lambda: torch.nn.Conv2d(4, 6, 3, groups=4)),
    "conv_no_groups": (lambda: nn.Conv2d(4, 4, 3, groups=0), lambda: torch.nn.Conv2d(4, 4, 3, groups=0)),
    "conv_padding_word": (
        lambda: nn.Conv1d(4, 4, 3, padding="full"),
        lambda: torch.nn.Conv1d(4, 4, 3, padding="full"),
    ),
    "conv_same_stride": (
        lambda: nn.Conv2d(4, 4, 3, 2, "same"),
        lambda: torch.nn.Conv2d(4, 4, 3, 2, "same"),
    ),
    "conv1d_kernel_of_two": (
        lambda: nn.Conv1d(4, 4, (3, 3))(Tensor.zeros(2, 4, 6)),
        lambda: torch.nn.Conv1d(4, 4, (3, 3))(torch.zeros(2, 4, 6)),
    ),
    "conv_stride": (
        lambda: nn.Conv2d(4, 4, 3, stride=0),
        lambda: torch.nn.Conv2d(4, 4, 3, stride=0)(torch.zeros(X)),
    ),
    "conv_negative_padding": (
        lambda: nn.Conv2d(4, 4, 3, padding=-1),
        lambda: torch.nn.Conv2d(4, 4, 3, padding=-1)(torch.zeros(X)),
    ),
    "conv_channels": (
        lambda: nn.Conv2d(3, 4, 3)(Tensor.zeros(X)),
        lambda: torch.nn.Conv2d(3, 4, 3)(torch.zeros(X)),
    ),
    "conv_axes": (
        lambda: nn.Conv2d(4, 4, 3)(Tensor.zeros(4, 6)),
        lambda: torch.nn.Conv2d(4, 4, 3)(torch.zeros(4, 6)),
    ),
    "transposed_channels": (
        lambda: nn.ConvTranspose2d(3, 4, 3)(Tensor.zeros(X)),
        lambda: torch.nn.ConvTranspose2d(3, 4, 3)(torch.zeros(X)),
    ),
    "transposed_output_padding": (
        lambda: nn.ConvTranspose1d(4, 4, 3, 2, 1, 2),
        lambda: torch.nn.ConvTranspose1d(4, 4, 3, 2, 1, 2)(torch.zeros(2, 4, 5)),
    ),
    "transposed_padding_word": (
        lambda: nn.ConvTranspose1d(4, 4, 3, 1, "same"),
        lambda: torch.nn.ConvTranspose1d(4, 4, 3, 1, "same")(torch.zeros(2, 4, 5)),
    ),
    "group_norm_groups": (lambda: nn.GroupNorm(3, 4), lambda: torch.nn.GroupNorm(3, 4)),
    "group_norm_channels": (
        lambda: nn.GroupNorm(2, 6)(Tensor.zeros(X)),
        lambda: torch.nn.GroupNorm(2, 6)(torch.zeros(X)),
    ),
    "layer_norm": (
        lambda: nn.LayerNorm(4)(Tensor.zeros(X)),
        lambda: torch.nn.LayerNorm(4)(torch.zeros(X)),
    ),
    "layer_norm2d": (
        lambda: nn.LayerNorm2d(4)(Tensor.zeros(4, 6, 6)),
        lambda: TorchLayerNorm2d(4)(torch.zeros(4, 6, 6)),
    ),
    "rms_norm": (lambda: nn.RMSNorm(4)(Tensor.zeros(X)), lambda: torch.nn.RMSNorm(4)(torch.zeros(X))),
    "bilinear_sizes": (
        lambda: nn.Bilinear(3, 4, 2)(Tensor.zeros(2, 4), Tensor.zeros(2, 4)),
        lambda: torch.nn.Bilinear(3, 4, 2)(torch.zeros(2, 4), torch.zeros(2, 4)),
    ),
    "bilinear_axes": (
        lambda: nn.Bilinear(3, 4, 2)(Tensor.zeros(2, 3), Tensor.zeros(5, 4)),
        lambda: torch.nn.Bilinear(3, 4, 2)(torch.zeros(2, 3), torch.zeros(5, 4)),
    ),
    "bilinear_none": (lambda: nn.Bilinear(0, 4, 2), lambda: torch.nn.Bilinear(0, 4, 2)),
    "embedding_floats": (
        lambda: nn.Embedding(3, 4)(Tensor.zeros(2)),
        lambda: torch.nn.Embedding(3, 4)(torch.zeros(2)),
    ),
    "lstm_sizes": (
        lambda: nn.LSTM(5, 4)(Tensor.zeros(2, 3, 4)),
        lambda: torch.nn.LSTM(5, 4)(torch.zeros(2, 3, 4)),
    ),
    "lstm_axes": (
        lambda: nn.LSTM(5, 4)(Tensor.zeros(1, 2, 3, 5)),
        lambda: torch.nn.LSTM(5, 4)(torch.zeros(1, 2, 3, 5)),
    ),
    "lstm_empty": (
        lambda: nn.LSTM(5, 4)(Tensor.zeros(0, 3, 5)),
        lambda: torch.nn.LSTM(5, 4)(torch.zeros(0, 3, 5)),
    ),
    "lstm_hidden": (lambda: nn.LSTM(5, 0), lambda: torch.nn.LSTM(5, 0)),
    "lstm_layers": (lambda: nn.LSTM(5, 4, 0), lambda: torch.nn.LSTM(5, 4, 0)),
    "lstm_dropout": (lambda: nn.LSTM(5, 4, 2, dropout=2.0), lambda: torch.nn.LSTM(5, 4, 2, dropout=2.0)),
    "lstm_state": (
        lambda: nn.LSTM(5, 4)(Tensor.zeros(2, 3, 5), (Tensor.zeros(2, 3, 4), Tensor.zeros(2, 3, 4))),
        lambda: torch.nn.LSTM(5, 4)(torch.zeros(2, 3, 5), (torch.zeros(2, 3, 4), torch.zeros(2, 3, 4))),
    ),
    "gru_state": (
        lambda: nn.GRU(5, 4)(Tensor.zeros(2, 3, 5), Tensor.zeros(1, 2, 4)),
        lambda: torch.nn.GRU(5, 4)(torch.zeros(2, 3, 5), torch.zeros(1, 2, 4)),
    ),
    "lstm_cell": (
        lambda: nn.LSTMCell(5, 4)(Tensor.zeros(2, 4)),
        lambda: torch.nn.LSTMCell(5, 4)(torch.zeros(2, 4)),
    ),
    "lstm_cell_state": (
        lambda: nn.LSTMCell(5, 4)(Tensor.zeros(2, 5), (Tensor.zeros(3, 4), Tensor.zeros(3, 4))),
        lambda: torch.nn.LSTMCell(5, 4)(torch.zeros(2, 5), (torch.zeros(3, 4), torch.zeros(3, 4))),
    ),
    "attention_heads": (lambda: nn.MultiheadAttention(8, 3), lambda: torch.nn.MultiheadAttention(8, 3)),
    "attention_none": (lambda: nn.MultiheadAttention(0, 1), lambda: torch.nn.MultiheadAttention(0, 1)),
    "attention_size": (
        lambda: nn.MultiheadAttention(8, 2)(*[Tensor.zeros(3, 2, 6)] * 3),
        lambda: torch.nn.MultiheadAttention(8, 2)(*[torch.zeros(3, 2, 6)] * 3),
    ),
    "attention_axes": (
        lambda: nn.MultiheadAttention(8, 2)(*[Tensor.zeros(3, 2, 2, 8)] * 3),
        lambda: torch.nn.MultiheadAttention(8, 2)(*[torch.zeros(3, 2, 2, 8)] * 3),
    ),
    "attention_mask": (
        lambda: nn.MultiheadAttention(8, 2)(*[Tensor.zeros(3, 2, 8)] * 3, attn_mask=Tensor.zeros(2, 3)),
        lambda: torch.nn.MultiheadAttention(8, 2)(*[torch.zeros(3, 2, 8)] * 3, attn_mask=torch.zeros(2, 3)),
    ),
    "attention_mask_dtype": (
        lambda: nn.MultiheadAttention(8, 2)(*[Tensor.zeros(3, 2, 8)] * 3, attn_mask=Tensor.zeros(3, 3).int()),
        lambda: torch.nn.MultiheadAttention(8, 2)(
            *[torch.zeros(3, 2, 8)] * 3, attn_mask=torch.zeros(3, 3).int()
        ),
    ),
    "attention_padding": (
        lambda: nn.MultiheadAttention(8, 2)(
            *[Tensor.zeros(3, 2, 8)] * 3, key_padding_mask=Tensor.zeros(3, 2)
        ),
        lambda: torch.nn.MultiheadAttention(8, 2)(
            *[torch.zeros(3, 2, 8)] * 3, key_padding_mask=torch.zeros(3, 2)
        ),
    ),
    "block_activation": (
        lambda: nn.TransformerBlock(8, 2, activation="sine"),
        lambda: torch.nn.TransformerEncoderLayer(8, 2, activation="sine"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_torch_refuses_is_refused_by_a_typed_error(name):
    ours, theirs = REFUSED[name]
    with pytest.raises(Exception):  # noqa: B017  torch's errors have many types
        theirs()
    with pytest.raises((ArgumentError, ShapeError, DTypeError), match="expected"):
        flat(ours())
