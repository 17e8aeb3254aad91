"""If, Loop and Scan. Conditions are computed while the graph is built: they select a branch, or end a
loop."""

from __future__ import annotations

from collections.abc import Sequence

from polygrad.dtype import dtypes
from polygrad.errors import OnnxError
from polygrad.onnx.op_table import Body, op
from polygrad.onnx.values import Constant, Value, numbers_of, scalar_of, tensor_of
from polygrad.tensor.tensor import Tensor


@op("If", 1, 11, 13, 16, 19, 21, 23, 24, 25)
def if_(condition: Value, *, then_branch: Body, else_branch: Body) -> tuple[Value, ...]:
    return tuple(then_branch() if scalar_of(condition) else else_branch())


MAX_ROUNDS = 1 << 20  # of a Loop: Python does them one by one


@op("Loop", 1, 11, 13, 16, 19, 21, 23, 24, 25)
def loop(
    trips: Value, condition: Value, *carried: Value, body: Body, outputs: int, device: str | None
) -> tuple[Value, ...]:
    """The values that are carried from round to round, then the values that the rounds give, stacked. Raises
    OnnxError for more than MAX_ROUNDS rounds."""
    max_rounds = None if trips is None else int(scalar_of(trips))
    goes_on = condition is None or bool(scalar_of(condition))
    values = list(carried)
    collected: list[list[Value]] = [[] for _ in range(outputs - len(values))]
    i = 0
    while goes_on and (max_rounds is None or i < max_rounds):
        if i == MAX_ROUNDS:
            raise OnnxError(f"expected at most {MAX_ROUNDS} rounds, got more")
        results = body(Constant.of(i), Constant.of(True, dtypes.bool), *values)
        if condition is not None or max_rounds is None:
            goes_on = bool(scalar_of(results[0]))
        values = results[1 : 1 + len(values)]
        for column, value in zip(collected, results[1 + len(values) :]):
            column.append(value)
        i += 1
    return (*values, *[_stack(column, 0, device) for column in collected])


def _stack(values: Sequence[Value], axis: int, device: str | None) -> Tensor:
    """Stack the values of all iterations along a new axis; without iterations an empty vector, as the shape
    is unknown."""
    if not values:
        return Tensor.zeros(0, device=device)
    tensors = [tensor_of(value, device) for value in values]
    return tensors[0].stack(*tensors[1:], dim=axis)


@op("Scan", 9, 11, 16, 19, 21, 23, 24, 25)
def scan(
    *inputs: Value,
    body: Body,
    num_scan_inputs: int,
    scan_input_axes: list[int] | None = None,
    scan_input_directions: list[int] | None = None,
    scan_output_axes: list[int] | None = None,
    scan_output_directions: list[int] | None = None,
    device: str | None,
) -> tuple[Value, ...]:
    """The body for each slice of the last inputs, with the first ones as its state."""
    count = len(inputs) - num_scan_inputs
    state, scanned = list(inputs[:count]), [tensor_of(x, device) for x in inputs[count:]]
    axes = scan_input_axes or [0] * len(scanned)
    backward = scan_input_directions or [0] * len(scanned)
    lengths = {x.shape[axis] for x, axis in zip(scanned, axes)}
    if len(lengths) != 1:
        raise OnnxError(f"expected inputs of one length, got {sorted(lengths)}")
    length = lengths.pop()
    collected: list[list[Value]] = []
    for t in range(length):
        slices = [
            x.select(axis, length - 1 - t if back else t) for x, axis, back in zip(scanned, axes, backward)
        ]
        results = body(*state, *slices)
        state = results[:count]
        collected = collected or [[] for _ in results[count:]]
        for column, value in zip(collected, results[count:]):
            column.append(value)
    flips = scan_output_directions or [0] * len(collected)
    places = scan_output_axes or [0] * len(collected)
    return (
        *state,
        *[
            _stack(column[::-1] if flip else column, axis, device)
            for column, flip, axis in zip(collected, flips, places)
        ],
    )


@op("Scan", 8)
def scan_8(
    lengths: Value,
    *inputs: Value,
    body: Body,
    num_scan_inputs: int,
    directions: list[int] | None = None,
    device: str | None,
) -> tuple[Value, ...]:
    """`scan` of inputs whose first axis is the batch: its sequences are scanned one by one, each to its
    length."""
    tensors = [tensor_of(x, device) for x in inputs]
    count = len(tensors) - num_scan_inputs
    batch, longest = tensors[count].shape[:2]
    ends = [longest] * batch if lengths is None else [int(n) for n in numbers_of(lengths)]
    rows = []
    for b, end in enumerate(ends):
        inputs_of_row = [x[b] for x in tensors[:count]] + [x[b, :end] for x in tensors[count:]]
        results = scan(
            *inputs_of_row,
            body=body,
            num_scan_inputs=num_scan_inputs,
            scan_input_directions=directions,
            device=device,
        )
        padded = [tensor_of(x, device) for x in results]
        rows.append(
            padded[:count] + [x.pad([(0, longest - end), *[None] * (x.ndim - 1)]) for x in padded[count:]]
        )
    return tuple(_stack(list(column), 0, device) for column in zip(*rows))
