"""RNN, GRU and LSTM: a step for each, and one loop over time for all. Sequences are unrolled."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from polygrad.dtype import dtypes
from polygrad.errors import OnnxError
from polygrad.onnx.op_table import op
from polygrad.onnx.ops.activations_ops import recurrent_activation
from polygrad.onnx.ops.movement_ops import reverse_sequence
from polygrad.tensor.tensor import Tensor

Activation = Callable[[Tensor], Tensor]
_TAKES_ALPHA = {"affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu"}
_TAKES_BETA = {"affine", "scaledtanh", "hardsigmoid"}


@dataclass(frozen=True)
class _Layer:
    """The settings of the steps of one direction. `r`: (hidden, gates * hidden); `r_bias`: of its product."""

    activations: list[Activation]
    hidden: int
    r: Tensor
    r_bias: Tensor | None
    peepholes: Tensor | None
    clip: float | None
    coupled: bool  # LSTM: one gate for input and forget; GRU: a product before the reset gate

    def clip_values(self, x: Tensor) -> Tensor:
        return x if self.clip is None else x.clamp(-self.clip, self.clip)


Step = Callable[[_Layer, Tensor, list[Tensor]], list[Tensor]]


def _rnn_step(layer: _Layer, x: Tensor, state: list[Tensor]) -> list[Tensor]:
    total = x + state[0].dot(layer.r)
    if layer.r_bias is not None:
        total = total + layer.r_bias
    return [layer.activations[0](layer.clip_values(total))]


def _gru_step(layer: _Layer, x: Tensor, state: list[Tensor]) -> list[Tensor]:
    """Gates z (update), r (reset), h (hidden)."""
    n, (h,), (f, g) = layer.hidden, state, layer.activations
    bias = layer.r_bias
    zr = x[:, : 2 * n] + h.dot(layer.r[:, : 2 * n])
    zr = zr if bias is None else zr + bias[: 2 * n]
    z, r = f(layer.clip_values(zr)).split((n, n), 1)
    new_weights = layer.r[:, 2 * n :]
    if layer.coupled:
        part = h.dot(new_weights)
        part = r * (part if bias is None else part + bias[2 * n :])
    else:
        part = (r * h).dot(new_weights)
        part = part if bias is None else part + bias[2 * n :]
    new = g(layer.clip_values(x[:, 2 * n :] + part))
    return [(1.0 - z) * new + z * h]


def _lstm_step(layer: _Layer, x: Tensor, state: list[Tensor]) -> list[Tensor]:
    """Gates i (input), o (output), f (forget), c (cell); peepholes of i, o, f see the cell."""
    n, (h, c), (f, g, last) = layer.hidden, state, layer.activations
    total = x + h.dot(layer.r)
    total = total if layer.r_bias is None else total + layer.r_bias
    i, o, forget, cell = total.split((n, n, n, n), 1)
    if layer.peepholes is not None:
        pi, po, pf = layer.peepholes.split((n, n, n), 0)
        i, forget = i + pi * c, forget + pf * c
    i = f(layer.clip_values(i))
    forget = 1.0 - i if layer.coupled else f(layer.clip_values(forget))
    c = forget * c + i * g(layer.clip_values(cell))
    if layer.peepholes is not None:
        o = o + po * c
    return [f(layer.clip_values(o)) * last(c), c]


def _activations(
    names: Sequence[str] | None,
    defaults: Sequence[str],
    alphas: Sequence[float] | None,
    betas: Sequence[float] | None,
    directions: int,
) -> list[list[Activation]]:
    """The activations of each direction. Alphas and betas are for those that take one, in order."""
    chosen = list(names) if names else list(defaults) * directions
    if len(chosen) != len(defaults) * directions:
        raise OnnxError(f"expected {len(defaults) * directions} activations, got {chosen}")
    alpha, beta = iter(alphas or ()), iter(betas or ())
    out: list[Activation] = []
    for name in chosen:
        a = next(alpha, None) if name.lower() in _TAKES_ALPHA else None
        b = next(beta, None) if name.lower() in _TAKES_BETA else None
        out.append(functools.partial(recurrent_activation(name), a=a, b=b))
    return [out[i : i + len(defaults)] for i in range(0, len(out), len(defaults))]


def _unroll(
    step: Step,
    layers: list[_Layer],
    x: Tensor,
    w: Tensor,
    bias: Tensor | None,
    lengths: Tensor | None,
    initial: list[Tensor | None],
    direction: str,
    layout: int,
) -> tuple[Tensor, ...]:
    """The outputs (time, directions, batch, hidden), and the last states (directions, batch, hidden)."""
    if direction not in ("forward", "reverse", "bidirectional"):
        raise OnnxError(f"expected direction forward, reverse or bidirectional, got {direction!r}")
    rows = x.transpose(0, 1) if layout else x
    length, batch = rows.shape[:2]
    outputs, last = [], []
    for d, layer in enumerate(layers):
        backward = direction == "reverse" or d == 1
        products = _reverse_sequences(rows, lengths) if backward else rows
        products = products.dot(w[d].T)
        if bias is not None:
            products = products + bias[d, : w.shape[1]]
        zeros = Tensor.zeros(batch, layer.hidden, dtype=x.dtype, device=x.device)
        starts = [s if s is None else s.transpose(0, 1) if layout else s for s in initial]
        state = [zeros if s is None else s[d] for s in starts]
        steps = []
        for t in range(length):
            new = step(layer, products[t], state)
            out = new[0]
            if lengths is not None:
                runs = (lengths > t).reshape(-1, 1)
                out = runs.where(out, 0.0)
                new = [runs.where(a, b) for a, b in zip(new, state)]
            state = new
            steps.append(out)
        way = steps[0].stack(*steps[1:])
        outputs.append(_reverse_sequences(way, lengths) if backward else way)
        last.append(state)
    y = outputs[0].stack(*outputs[1:], dim=1)
    final = [last[0][i].stack(*[s[i] for s in last[1:]]) for i in range(len(last[0]))]
    if layout:
        return y.permute(2, 0, 1, 3), *[s.transpose(0, 1) for s in final]
    return y, *final


def _reverse_sequences(x: Tensor, lengths: Tensor | None) -> Tensor:
    """Sequences in reverse order."""
    return x.flip(0) if lengths is None else reverse_sequence(x, lengths)


def _run(
    step: Step,
    gates: int,
    defaults: tuple[str, ...],
    x: Tensor,
    w: Tensor,
    r: Tensor,
    bias: Tensor | None,
    lengths: Tensor | None,
    initial: list[Tensor | None],
    activations: list[str] | None,
    activation_alpha: list[float] | None,
    activation_beta: list[float] | None,
    clip: float | None,
    direction: str,
    layout: int,
    coupled: int = 0,
    peepholes: Tensor | None = None,
) -> tuple[Tensor, ...]:
    ways = w.shape[0]
    functions = _activations(activations, defaults, activation_alpha, activation_beta, ways)
    layers = [
        _Layer(
            functions[d],
            r.shape[2],
            r[d].T,
            None if bias is None else bias[d, w.shape[1] :],
            None if peepholes is None else peepholes[d],
            clip,
            bool(coupled),
        )
        for d in range(ways)
    ]
    if ways != (2 if direction == "bidirectional" else 1) or w.shape[1] != gates * r.shape[2]:
        raise OnnxError(f"expected weights of direction {direction}, got shapes {w.shape} and {r.shape}")
    ends = None if lengths is None else lengths.cast(dtypes.int64)
    return _unroll(step, layers, x, w, bias, ends, initial, direction, layout)


@op("RNN", 1, 7, 14, 22)
def rnn(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    bias: Tensor | None = None,
    lengths: Tensor | None = None,
    h: Tensor | None = None,
    *,
    activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None,
    activations: list[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    output_sequence: int = 0,
) -> tuple[Tensor, ...]:
    return _run(
        _rnn_step, 1, ("Tanh",), x, w, r, bias, lengths, [h], activations, activation_alpha, activation_beta,
        clip, direction, layout,
    )  # fmt: skip


@op("GRU", 1, 3, 7, 14, 22)
def gru(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    bias: Tensor | None = None,
    lengths: Tensor | None = None,
    h: Tensor | None = None,
    *,
    activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None,
    activations: list[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
    linear_before_reset: int = 0,
    output_sequence: int = 0,
) -> tuple[Tensor, ...]:
    return _run(
        _gru_step, 3, ("Sigmoid", "Tanh"), x, w, r, bias, lengths, [h], activations, activation_alpha,
        activation_beta, clip, direction, layout, linear_before_reset,
    )  # fmt: skip


@op("LSTM", 1, 7, 14, 22)
def lstm(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    bias: Tensor | None = None,
    lengths: Tensor | None = None,
    h: Tensor | None = None,
    c: Tensor | None = None,
    peepholes: Tensor | None = None,
    *,
    activation_alpha: list[float] | None = None,
    activation_beta: list[float] | None = None,
    activations: list[str] | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    layout: int = 0,
    output_sequence: int = 0,
) -> tuple[Tensor, ...]:
    return _run(
        _lstm_step, 4, ("Sigmoid", "Tanh", "Tanh"), x, w, r, bias, lengths, [h, c], activations,
        activation_alpha, activation_beta, clip, direction, layout, input_forget, peepholes,
    )  # fmt: skip
