"""Batch scoring: a function of many rows or files, divided among ranks; its results are parts in a folder.

A part is a range of rows, and a file that is there whole or not at all. So each row has one result, whichever
ranks were killed and however often the program was started: what is there is not computed again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polygrad.distributed.group import rank, size
from polygrad.distributed.messages import broadcast_json
from polygrad.errors import ArgumentError, ShapeError
from polygrad.helpers import write_file
from polygrad.nn.sealed_files import read_sealed, take_snapshot, write_snapshot
from polygrad.tensor.tensor import Tensor

_PLAN = "scores.json"
_RESULT = "result"  # the name of a Tensor that has none

Result = Tensor | Mapping[str, Tensor] | Sequence[Any]


@dataclass(frozen=True)
class _Plan:
    """How rows are divided into parts."""

    rows: int
    part_rows: int

    @property
    def parts(self) -> int:
        return -(-self.rows // self.part_rows)

    def rows_of(self, part: int) -> range:
        return range(part * self.part_rows, min((part + 1) * self.part_rows, self.rows))

    def file(self, folder: Path, part: int) -> Path:
        return folder / f"part-{part + 1:06d}-of-{self.parts:06d}.safetensors"

    def missing(self, folder: Path) -> list[int]:
        return [part for part in range(self.parts) if not self.file(folder, part).exists()]


def score(
    function: Callable[[Any], Result],
    items: Any,
    output: str | Path,
    *,
    part_rows: int = 1024,
) -> list[int]:
    """Write the results of `function` for all rows of `items` to the folder `output`, which `scores` reads;
    the numbers of the parts that this rank wrote.

    function: called with a range of rows, `items[a:b]`; the results of these rows: a Tensor with a row for
        each, several by name, or a list with a value for each that JSON can hold.
    items: a Tensor, an array, or a list, as of the paths of a folder's files; equal on all ranks.
    output: a folder that all ranks have. With parts of an earlier call for as many rows, the rest is done.
    part_rows: the rows of a file, and of a call.

    Ranks that have done their parts do not wait for others. Raises ArgumentError, for the folder of other
    rows too, ShapeError for results of another number of rows, OSError.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> score(lambda rows: rows.sum(1), Tensor.arange(6).reshape(3, 2), folder, part_rows=2)
    [0, 1]
    >>> scores(folder).tolist()
    [1, 5, 9]
    """
    if type(part_rows) is not int or part_rows < 1:
        raise ArgumentError(f"score: part_rows: expected at least 1, got {part_rows!r}")
    folder = Path(output)
    count = _count(items)
    missing = broadcast_json(_begin(folder, _Plan(count, part_rows)) if rank() == 0 else None)
    plan = _Plan(count, part_rows)
    if (expected := missing["rows"]) != count:
        raise ArgumentError(f"score: items: expected the {expected} rows that rank 0 has, got {count}")
    mine = missing["parts"][rank() :: size()]
    for part in mine:
        rows = plan.rows_of(part)
        _write(plan.file(folder, part), function(items[rows.start : rows.stop]), len(rows))
    return mine


def scores(output: str | Path) -> Any:
    """The results in a folder of `score`, in the order of the rows: a Tensor, several by name, or a list.

    Raises ArgumentError where parts are missing or damaged.
    """
    folder = Path(output)
    plan = _read_plan(folder)
    if plan is None:
        raise ArgumentError(f"scores: {folder}: expected a folder that score has written, found no {_PLAN}")
    if missing := plan.missing(folder):
        raise ArgumentError(
            f"scores: {folder}: expected {plan.parts} parts, {len(missing)} are missing, first number "
            f"{missing[0] + 1}: call score again"
        )
    parts = [
        read_sealed(file, f"scores: {file}")
        for part in range(plan.parts)
        for file in [plan.file(folder, part)]
    ]
    if parts and "values" in parts[0][1]:
        return [value for _, metadata in parts for value in json.loads(metadata["values"])]
    names = list(parts[0][0]) if parts else []
    joined = {name: Tensor.cat(*[tensors[name] for tensors, _ in parts]) for name in names}
    return joined[_RESULT] if names == [_RESULT] else joined


def _count(items: Any) -> int:
    shape = getattr(items, "shape", None)
    if not hasattr(items, "__getitem__") or isinstance(items, (str, bytes, Mapping)) or shape == ():
        raise ArgumentError(f"score: items: expected rows or a list, got {type(items).__name__}")
    return int(shape[0]) if shape else len(items)


def _begin(folder: Path, plan: _Plan) -> dict[str, Any]:
    """What rank 0 finds: the parts that are missing. Raises ArgumentError."""
    before = _read_plan(folder)
    if before not in (None, plan):
        raise ArgumentError(
            f"score: {folder} has parts of {before.rows} rows, {before.part_rows} in each, and this call is "
            f"for {plan.rows}, {plan.part_rows} in each: choose another folder"
        )
    if before is None:
        text = json.dumps({"rows": plan.rows, "part_rows": plan.part_rows})
        folder.mkdir(parents=True, exist_ok=True)
        write_file(folder / _PLAN, [text.encode()], sync=True)
    return {"rows": plan.rows, "parts": plan.missing(folder)}


def _read_plan(folder: Path) -> _Plan | None:
    path = folder / _PLAN
    if not path.exists():
        return None
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        return _Plan(int(fields["rows"]), int(fields["part_rows"]))
    except (ValueError, KeyError, TypeError) as e:
        raise ArgumentError(f"{path}: the file is damaged: {e!r}") from e


def _write(path: Path, result: Result, rows: int) -> None:
    """Write the results of a part. Raises ShapeError, ArgumentError."""
    if isinstance(result, Tensor):
        result = {_RESULT: result}
    if isinstance(result, Mapping):
        for name, t in result.items():
            if not isinstance(t, Tensor) or not t.ndim or t.shape[0] != rows:
                actual = t.shape if isinstance(t, Tensor) else type(t).__name__
                raise ShapeError(
                    f"score: {name}: expected a Tensor with a row for each of {rows}, got {actual}"
                )
        write_snapshot(path, take_snapshot({name: t.detach() for name, t in result.items()}, {}))
        return
    if not isinstance(result, (list, tuple)) or len(result) != rows:
        got = f"{len(result)}" if isinstance(result, (list, tuple)) else type(result).__name__
        raise ShapeError(
            f"score: expected a Tensor or a list with a value for each of {rows} rows, got {got}"
        )
    try:
        text = json.dumps(list(result))
    except (TypeError, ValueError) as e:
        raise ArgumentError(f"score: expected values that JSON can hold, got {e}") from e
    write_snapshot(path, take_snapshot({}, {"values": text}))
