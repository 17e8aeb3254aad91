"""Recurrent layers: LSTMCell, and LSTM and GRU over sequences.

Hochreiter and Schmidhuber, 1997; Cho et al., 2014. Parameters have torch's names and layout: `weight_ih`
holds the matrices of the gates one above the other, in the order input, forget, cell, output (LSTM) or reset,
update, new (GRU). All start uniform in ±1/sqrt(hidden_size). A sequence is unrolled, so the graph grows with
its length; all steps share one product with the inputs.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

from polygrad.errors import ArgumentError, ShapeError
from polygrad.nn.layer import Layer
from polygrad.nn.parameter import parameter
from polygrad.tensor.core.base import DTypeLike
from polygrad.tensor.tensor import Tensor


def _uniform(hidden_size: int, dtype: DTypeLike | None, *shape: int) -> Tensor:
    bound = 1 / math.sqrt(hidden_size)
    return parameter(Tensor.uniform(*shape, low=-bound, high=bound), dtype)


def _lstm_step(gates: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """The next (h, c), from the pre-activations of the gates."""
    i, f, g, o = gates.chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


class LSTMCell(Layer):
    """One step of an LSTM: x (n, input_size) and a state (h, c), both (n, hidden_size), to the next one.

    >>> h, c = nn.LSTMCell(3, 5)(Tensor.rand(2, 3))
    >>> h.shape, c.shape
    ((2, 5), (2, 5))
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, dtype: DTypeLike | None = None
    ) -> None:
        _check_sizes("LSTMCell", input_size, hidden_size)
        self.hidden_size = hidden_size
        self.weight_ih = _uniform(hidden_size, dtype, 4 * hidden_size, input_size)
        self.weight_hh = _uniform(hidden_size, dtype, 4 * hidden_size, hidden_size)
        self.bias_ih = _uniform(hidden_size, dtype, 4 * hidden_size) if bias else None
        self.bias_hh = _uniform(hidden_size, dtype, 4 * hidden_size) if bias else None

    def __call__(self, x: Tensor, hc: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """`hc`: zeros unless given. Raises ShapeError."""
        if x.ndim != 2 or x.shape[1] != self.weight_ih.shape[1]:
            raise ShapeError(f"LSTMCell: expected shape (n, {self.weight_ih.shape[1]}), got {x.shape}")
        h, c = hc if hc is not None else (_zeros(x, x.shape[0], self.hidden_size),) * 2
        _check_state("LSTMCell", (x.shape[0], self.hidden_size), h, c)
        gates = x.linear(self.weight_ih.T, self.bias_ih) + h.linear(self.weight_hh.T, self.bias_hh)
        return _lstm_step(gates, c)


class _Recurrent(Layer, ABC):
    """The base of LSTM and GRU: parameters of every layer and direction, and the loops over them."""

    _gates: int

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        bias: bool,
        batch_first: bool,
        dropout: float,
        bidirectional: bool,
        dtype: DTypeLike | None,
    ) -> None:
        name = type(self).__name__
        _check_sizes(name, input_size, hidden_size)
        if num_layers < 1:
            raise ArgumentError(f"{name}: expected num_layers of at least 1, got {num_layers}")
        if not 0 <= dropout <= 1:
            raise ArgumentError(f"{name}: expected dropout in 0..1, got {dropout}")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first = bias, batch_first
        self.dropout, self.bidirectional = dropout, bidirectional
        rows = self._gates * hidden_size
        for layer in range(num_layers):
            columns = input_size if layer == 0 else hidden_size * len(self._directions())
            for direction in self._directions():
                parameters = {
                    "weight_ih": _uniform(hidden_size, dtype, rows, columns),
                    "weight_hh": _uniform(hidden_size, dtype, rows, hidden_size),
                }
                if bias:
                    parameters |= {
                        name: _uniform(hidden_size, dtype, rows) for name in ("bias_ih", "bias_hh")
                    }
                for key, value in parameters.items():
                    setattr(self, f"{key}_l{layer}{direction}", value)

    def _directions(self) -> tuple[str, ...]:
        return ("", "_reverse") if self.bidirectional else ("",)

    @abstractmethod
    def _step(self, x: Tensor, state: list[Tensor], weight: Tensor, bias: Tensor | None) -> list[Tensor]:
        """The next state, `h` first. `x`: the inputs' part of the gates' pre-activations."""

    def _run(self, x: Tensor, initial: list[Tensor] | None, states: int) -> tuple[Tensor, list[Tensor]]:
        """The outputs, in the layout of `x`, and the last state: `states` Tensors (layers, n, hidden)."""
        name, directions = type(self).__name__, self._directions()
        batched = x.ndim == 3
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            raise ShapeError(
                f"{name}: expected shape (length, n, {self.input_size}) or (length, {self.input_size}), "
                f"got {x.shape}"
            )
        rows = x.transpose(0, 1) if self.batch_first and batched else x if batched else x.unsqueeze(1)
        if not isinstance(rows.shape[0], int) or rows.shape[0] < 1:
            raise ShapeError(f"{name}: expected a sequence of at least 1 step, got shape {x.shape}")
        shape = (self.num_layers * len(directions), rows.shape[1], self.hidden_size)
        if initial is None:
            initial = [_zeros(x, *shape)] * states
        else:
            initial = initial if batched else [s.unsqueeze(1) for s in initial]
            _check_state(name, shape, *initial)
        last: list[list[Tensor]] = []
        for layer in range(self.num_layers):
            ways = []
            for d, direction in enumerate(directions):
                start = [s[layer * len(directions) + d] for s in initial]
                out, state = self._one_way(rows, start, f"l{layer}{direction}", bool(direction))
                ways.append(out)
                last.append(state)
            rows = ways[0].cat(*ways[1:], dim=-1) if len(ways) > 1 else ways[0]
            if layer + 1 < self.num_layers:
                rows = rows.dropout(self.dropout)
        final = [last[0][i].stack(*[s[i] for s in last[1:]]) for i in range(states)]
        if not batched:
            return rows.squeeze(1), [s.squeeze(1) for s in final]
        return rows.transpose(0, 1) if self.batch_first else rows, final

    def _one_way(
        self, rows: Tensor, state: list[Tensor], suffix: str, backward: bool
    ) -> tuple[Tensor, list[Tensor]]:
        """One layer in one direction, over `rows` (length, n, columns): its outputs and its last state."""
        weight_ih, weight_hh = getattr(self, f"weight_ih_{suffix}"), getattr(self, f"weight_hh_{suffix}")
        bias_ih = getattr(self, f"bias_ih_{suffix}") if self.bias else None
        bias_hh = getattr(self, f"bias_hh_{suffix}") if self.bias else None
        projected = rows.linear(weight_ih.T, bias_ih)
        outputs = []
        steps = range(len(rows))
        for t in reversed(steps) if backward else steps:
            state = self._step(projected[t], state, weight_hh.T, bias_hh)
            outputs.append(state[0])
        if backward:
            outputs.reverse()
        return outputs[0].stack(*outputs[1:]), state


class LSTM(_Recurrent):
    """Layers of LSTM over sequences: x (length, n, input_size) to (outputs, (h, c)), as torch.nn.LSTM.

    outputs (length, n, directions * hidden_size); h and c, the state after the last step, (num_layers *
    directions, n, hidden_size). `batch_first`: x and the outputs are (n, length, ...). Without a batch, n is
    missing everywhere. `dropout`: in training, between layers. Raises ArgumentError.

    >>> outputs, (h, c) = nn.LSTM(3, 5)(Tensor.rand(7, 2, 3))
    >>> outputs.shape, h.shape
    ((7, 2, 5), (1, 2, 5))
    """

    _gates = 4

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype
        )

    def __call__(
        self, x: Tensor, hc: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """`hc`: the state before the first step, zeros unless given. Raises ShapeError."""
        out, (h, c) = self._run(x, None if hc is None else list(hc), 2)
        return out, (h, c)

    def _step(self, x: Tensor, state: list[Tensor], weight: Tensor, bias: Tensor | None) -> list[Tensor]:
        return list(_lstm_step(x + state[0].linear(weight, bias), state[1]))


class GRU(_Recurrent):
    """Layers of gated recurrent units over sequences: x (length, n, input_size) to (outputs, h).

    As torch.nn.GRU; shapes and arguments are those of LSTM. Raises ArgumentError.

    >>> outputs, h = nn.GRU(3, 5, bidirectional=True)(Tensor.rand(7, 2, 3))
    >>> outputs.shape, h.shape
    ((7, 2, 10), (2, 2, 5))
    """

    _gates = 3

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(
            input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype
        )

    def __call__(self, x: Tensor, h: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """`h`: the state before the first step, zeros unless given. Raises ShapeError."""
        out, (last,) = self._run(x, None if h is None else [h], 1)
        return out, last

    def _step(self, x: Tensor, state: list[Tensor], weight: Tensor, bias: Tensor | None) -> list[Tensor]:
        (h,) = state
        (xr, xz, xn), (hr, hz, hn) = x.chunk(3, 1), h.linear(weight, bias).chunk(3, 1)
        update = (xz + hz).sigmoid()
        new = (xn + (xr + hr).sigmoid() * hn).tanh()
        return [(1 - update) * new + update * h]


def _zeros(x: Tensor, *shape: int) -> Tensor:
    return Tensor.zeros(*shape, dtype=x.dtype, device=x.device, requires_grad=False)


def _check_sizes(name: str, input_size: int, hidden_size: int) -> None:
    if input_size < 1 or hidden_size < 1:
        raise ArgumentError(
            f"{name}: expected input_size and hidden_size of at least 1, got {input_size} and {hidden_size}"
        )


def _check_state(name: str, shape: tuple[int, ...], *state: Tensor) -> None:
    for t in state:
        if t.shape != shape:
            raise ShapeError(f"{name}: expected a state of shape {shape}, got {t.shape}")
