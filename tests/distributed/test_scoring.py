"""Batch scoring: each row once, on any number of ranks, also after a rank was killed."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import ranks

from polygrad import Tensor, distributed
from polygrad.errors import ArgumentError, ShapeError

pytestmark = pytest.mark.usefixtures("default_device")
PROGRAM = Path(__file__).parent / "scored.py"
ROWS = 100  # in parts of 7


def logged(folder: Path) -> Counter[int]:
    return Counter(int(line) for path in folder.glob("log-*") for line in path.read_text().split())


def test_results_are_those_of_one_call(tmp_path: Path) -> None:
    x = Tensor(np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32))
    for part_rows in (1, 7, 50, 64):
        folder = tmp_path / str(part_rows)
        done = distributed.score(lambda t: t.softmax(1), x, folder, part_rows=part_rows)
        assert done == list(range(-(-50 // part_rows)))
        np.testing.assert_array_equal(distributed.scores(folder).numpy(), x.softmax(1).numpy())
        assert distributed.score(lambda t: 1 / 0, x, folder, part_rows=part_rows) == []


def test_files_of_a_folder_and_values_that_json_holds(tmp_path: Path) -> None:
    for i in range(5):
        (tmp_path / f"{i}.txt").write_text("x" * i)
    paths = sorted(tmp_path.glob("*.txt"))
    distributed.score(lambda some: [len(p.read_text()) for p in some], paths, tmp_path / "out", part_rows=2)
    assert distributed.scores(tmp_path / "out") == [0, 1, 2, 3, 4]
    distributed.score(lambda some: [], [], tmp_path / "none")
    assert distributed.scores(tmp_path / "none") == {}


def test_a_call_that_fails_keeps_what_is_done(tmp_path: Path) -> None:
    def fails(rows: Tensor) -> Tensor:
        if rows[0].item() == 4:
            raise ZeroDivisionError
        return rows

    with pytest.raises(ZeroDivisionError):
        distributed.score(fails, Tensor.arange(10), tmp_path, part_rows=2)
    with pytest.raises(ArgumentError, match="expected 5 parts, 3 are missing, first number 3"):
        distributed.scores(tmp_path)
    assert distributed.score(lambda rows: rows, Tensor.arange(10), tmp_path, part_rows=2) == [2, 3, 4]
    assert distributed.scores(tmp_path).tolist() == list(range(10))


def test_what_is_refused(tmp_path: Path) -> None:
    x = Tensor.arange(4)
    for function, message in (
        (lambda rows: rows[:1], r"result: expected a Tensor with a row for each of 4, got \(1,\)"),
        (lambda rows: {"a": 3}, "a: expected a Tensor .* got int"),
        (lambda rows: [1], "for each of 4 rows, got 1"),
        (lambda rows: 3, "for each of 4 rows, got int"),
    ):
        with pytest.raises(ShapeError, match=message):
            distributed.score(function, x, tmp_path)
    with pytest.raises(ArgumentError, match="values that JSON can hold"):
        distributed.score(lambda rows: [object()] * 4, x, tmp_path)
    with pytest.raises(ArgumentError, match="has parts of 4 rows, 1024 in each"):
        distributed.score(lambda rows: rows, Tensor.arange(5), tmp_path)
    for items in ("text", 3, {"a": 1}, Tensor(1.0)):
        with pytest.raises(ArgumentError, match="items: expected rows or a list"):
            distributed.score(lambda rows: rows, items, tmp_path)
    with pytest.raises(ArgumentError, match="part_rows"):
        distributed.score(lambda rows: rows, x, tmp_path, part_rows=0)
    with pytest.raises(ArgumentError, match=r"found no scores\.json"):
        distributed.scores(tmp_path / "nowhere")
    distributed.score(lambda rows: rows, x, tmp_path)
    (part,) = tmp_path.glob("part-*")
    part.write_bytes(part.read_bytes()[:-1] + b"x")
    with pytest.raises(ArgumentError, match="damaged"):
        distributed.scores(tmp_path)
    (tmp_path / "scores.json").write_text("{}")
    with pytest.raises(ArgumentError, match=r"scores\.json: the file is damaged"):
        distributed.scores(tmp_path)


@pytest.mark.e2e
@ranks.needs_mpirun
@pytest.mark.parametrize("kind", ["list", "tensors"])
def test_each_row_has_one_result_after_a_rank_was_killed(tmp_path: Path, kind: str) -> None:
    killed = ranks.run("mpirun", 2, PROGRAM, tmp_path, ROWS, 1, kind)
    assert killed.returncode != 0
    before = logged(tmp_path)
    parts = len(list((tmp_path / "out").glob("part-*[0-9].safetensors")))
    assert 2 <= parts < 15 and set(before.values()) == {1}
    done = ranks.run("mpirun", 3, PROGRAM, tmp_path, ROWS, -1, kind)
    assert done.returncode == 0, done.stderr
    wrote = [json.loads(line.removeprefix("wrote ")) for line in done.stdout.split("\n") if "wrote" in line]
    assert len(wrote) == 3 and max(map(len, wrote)) - min(map(len, wrote)) <= 1, (
        "what is missing is divided anew"
    )
    found = distributed.scores(tmp_path / "out")
    if kind == "list":
        assert [value["row"] for value in found] == list(range(ROWS))
    else:
        assert found["row"].tolist() == list(range(ROWS))
        assert found["square"].tolist() == [row**2 for row in range(ROWS)]
    again = logged(tmp_path) - before
    parts_written = [part for parts in wrote for part in parts]
    in_parts = Counter(row for part in parts_written for row in range(7 * part, min(7 * part + 7, ROWS)))
    assert again == in_parts and sum(again.values()) < ROWS, "parts that were there are not computed again"
