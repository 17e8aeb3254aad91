"""Batches, splits and histories; data sets from local files."""

from __future__ import annotations

import gzip
import io
import struct
import tarfile
from itertools import chain

import numpy as np
import pytest

from polygrad import Tensor, compile_step, nn
from polygrad.engine.stats import stats
from polygrad.errors import ArgumentError, ShapeError
from polygrad.nn import data, datasets

pytestmark = pytest.mark.usefixtures("default_device")
X, Y = Tensor.arange(20).reshape(10, 2), Tensor.arange(10) * 10


def rows(part):
    x, y = part
    assert (x[:, 0] * 5).tolist() == y.tolist()  # rows stay together
    return (y // 10).tolist()


def test_batches_are_every_row_once(device):
    parts = [rows(b) for b in data.batches((X, Y), 4, seed=1)]
    assert [len(p) for p in parts] == [4, 4, 2]
    order = [*chain(*parts)]
    assert sorted(order) == list(range(10)) != order
    assert order == [*chain(*(rows(b) for b in data.batches((X, Y), 3, seed=1)))]
    assert order != [*chain(*(rows(b) for b in data.batches((X, Y), 3, seed=2)))]
    whole = [b[0].tolist() for b in data.batches(Y, 5, shuffle=False)]
    assert whole == [[0, 10, 20, 30, 40], [50, 60, 70, 80, 90]]
    assert [len(b[0]) for b in data.batches(Y, 4, drop_last=True)] == [4, 4]
    assert list(data.batches(Tensor.zeros(0, 2), 4)) == []


def test_epochs_have_orders_of_their_own_that_the_seed_gives():
    parts = [rows(b) for b in data.batches((X, Y), 4, seed=1, epochs=2)]
    first, second = parts[: len(parts) // 2], parts[len(parts) // 2 :]
    assert sorted(chain(*first)) == sorted(chain(*second))
    assert first != second
    assert second == [rows(b) for b in data.batches((X, Y), 4, seed=2)]


@pytest.mark.parametrize("ranks", [1, 2, 3, 6])
@pytest.mark.parametrize("drop_last", [False, True])
def test_the_batches_of_all_ranks_are_those_of_one_process(ranks, drop_last):
    options = {"seed": 3, "epochs": 2, "drop_last": drop_last}
    whole = [rows(b) for b in data.batches((X, Y), 6, **options)]
    parts = [[rows(b) for b in data.batches((X, Y), 6, rank=i, ranks=ranks, **options)] for i in range(ranks)]
    assert {len(p) for p in parts} == {len(whole)}
    assert [[*chain(*batch)] for batch in zip(*parts)] == whole
    for batch in zip(*parts):
        assert max(map(len, batch)) - min(map(len, batch)) <= 1


@pytest.mark.parametrize("drop_last", [False, True])
def test_batches_go_on_from_any_position(drop_last):
    options = {"seed": 3, "epochs": 3, "drop_last": drop_last, "rank": 1, "ranks": 2}
    whole = [rows(b) for b in data.batches((X, Y), 4, **options)]
    for start in range(len(whole) + 1):
        broken = data.batches((X, Y), 4, **options)
        for _ in range(start):
            next(broken)
        later = data.batches((X, Y), 4, start=broken.position, **options)
        assert (later.position, len(later)) == (start, len(whole))
        assert [rows(b) for b in later] == whole[start:] and later.position == len(whole)


def test_parts_are_all_rows_once():
    for count in range(20):
        for ranks in range(1, 8):
            parts = [data.part_of(count, rank, ranks) for rank in range(ranks)]
            assert [*chain(*parts)] == list(range(count))
            assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rank": 2, "ranks": 2}, "rank from 0 to ranks - 1, got 2 of 2"),
        ({"rank": 0, "ranks": 0}, "rank from 0 to ranks - 1"),
        ({"rank": 0, "ranks": 3}, "that 3 ranks can divide.*got 4"),
        ({"ranks": 2, "seed": None}, "expected a seed"),
        ({"start": 1, "seed": None}, "expected a seed"),
        ({"start": 4}, "start: expected 0 to 3 batches, got 4"),
        ({"start": -1}, "start: expected 0 to 3"),
    ],
)
def test_parts_and_positions_that_are_none(options, message):
    with pytest.raises(ArgumentError, match=message):
        data.batches((X, Y), 4, **{"seed": 1, **options})


def test_batches_say_how_many_there_are():
    for count, epochs, drop_last in (
        (4, 3, False),
        (4, 3, True),
        (3, 1, False),
        (100, 2, True),
        (4, 0, False),
    ):
        found = data.batches(Y, count, epochs=epochs, drop_last=drop_last)
        assert len(found) == len(list(found))


def test_progress_says_how_far_and_what_was_measured(capsys):
    history = data.History()
    for i in data.progress(range(20), "steps", history=history):
        history.add(loss=1 / (i + 1))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10  # no terminal: every tenth
    assert lines[0].startswith("steps |██                  | 2/20 [")
    assert lines[-1].startswith(f"steps |{'█' * 20}| 20/20 [") and lines[-1].endswith("loss 0.05]")


def test_progress_of_what_has_no_length_counts(capsys):
    assert list(data.progress(iter(range(5)))) == [0, 1, 2, 3, 4]
    assert capsys.readouterr().err.splitlines()[-1].startswith("5 [")
    assert list(data.progress([])) == [] and capsys.readouterr().err == ""


def test_a_history_is_drawn(tmp_path):
    history = data.History()
    for i in range(5):
        history.add(loss=5.0 - i, accuracy=i / 5)
    history.save(tmp_path / "loss.svg", "loss", title="a run")
    picture = (tmp_path / "loss.svg").read_text()
    assert ">loss<" in picture and ">a run<" in picture and ">accuracy<" not in picture
    assert ">accuracy<" in history.svg()
    with pytest.raises(ArgumentError, match="got 'los'"):
        history.svg("los")


def test_batches_of_a_size_are_the_same_kernels():
    x = Tensor.arange(4000).reshape(1000, 4).realize()
    next(data.batches(x, 10))
    before = stats.programs
    for _ in data.batches(x, 10):
        pass
    assert stats.programs == before


def test_a_compiled_step_takes_batches():
    x, y = Tensor.randn(20, 3), Tensor.randn(20, 1)
    model = nn.Linear(3, 1)
    opt = nn.optim.SGD(nn.state.get_parameters(model), 0.05)
    step = compile_step(lambda m, x, y: (m(x) - y).square().mean(), model, opt, x[:5], y[:5])
    history = data.History()
    for epoch in range(6):
        for a, b in data.batches((x, y), 5, seed=epoch):
            step.run(a, b)
            history.add(loss=step.loss_value())
    assert history.mean("loss", 4) < sum(history["loss"][:4]) / 4


def test_splits_are_every_row_once():
    parts = [rows(p) for p in data.split((X, Y), 0.5, 0.2, seed=3)]
    assert [len(p) for p in parts] == [5, 2, 3] and sorted([*chain(*parts)]) == list(range(10))
    assert [rows(p) for p in data.split((X, Y), 0.8, 0.2, shuffle=False)] == [list(range(8)), [8, 9]]
    assert [len(p[0]) for p in data.split(Y, *[0.1] * 10)] == [1] * 10
    assert [len(p[0]) for p in data.split(Y[:2], 0.1, 0.1, 0.8)] == [0, 0, 2]


def test_a_shuffle_keeps_rows_together():
    order = rows(data.shuffle((X, Y), seed=0))
    assert sorted(order) == list(range(10)) != order


def test_histories():
    h = data.History()
    h.add(loss=3.0, accuracy=Tensor([0.5]))
    h.add(loss=Tensor(1.0))
    h.add(loss=2)
    assert h["loss"] == [3.0, 1.0, 2.0] and h.last("loss") == 2 and h.mean("loss", 2) == 1.5
    assert h.best("loss") == (1, 1.0) and h.best("loss", largest=True) == (0, 3.0)
    assert h.csv() == "loss,accuracy\n3.0,0.5\n1.0,\n2.0,\n" and "loss" in h and "x" not in h


REFUSED = {
    "size": (lambda: data.batches(X, 0), ArgumentError),
    "epochs": (lambda: data.batches(X, 2, epochs=-1), ArgumentError),
    "size_of_a_float": (lambda: data.batches(X, 2.5), ArgumentError),
    "rows": (lambda: data.batches((X, Y[:3]), 2), ShapeError),
    "scalar": (lambda: data.shuffle(Tensor(1.0)), ShapeError),
    "nothing": (lambda: data.shuffle([]), ShapeError),
    "array": (lambda: data.shuffle([np.zeros(3)]), ShapeError),
    "fractions": (lambda: data.split(X), ArgumentError),
    "negative": (lambda: data.split(X, -0.5, 1.0), ArgumentError),
    "too_much": (lambda: data.split(X, 0.9, 0.2), ArgumentError),
    "history": (lambda: data.History()["loss"], ArgumentError),
    "last": (lambda: data.History().last("loss"), ArgumentError),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_sense_is_refused(name):
    make, error = REFUSED[name]
    with pytest.raises(error, match="expected"):
        make()


# --- data sets


def idx_bytes(array, code=8):
    head = struct.pack(f">HBB{array.ndim}I", 0, code, array.ndim, *array.shape)
    return head + array.astype(array.dtype.newbyteorder(">")).tobytes()


IMAGES = np.random.default_rng(0).integers(0, 256, (5, 4, 3), dtype=np.uint8)
LABELS = np.arange(5, dtype=np.uint8)


@pytest.mark.parametrize("fashion", [False, True])
def test_mnist_from_local_files(tmp_path, monkeypatch, fashion):
    folder = tmp_path / ("fashion-mnist" if fashion else "mnist")
    folder.mkdir()
    (folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx_bytes(IMAGES)))
    (folder / "train-labels-idx1-ubyte").write_bytes(idx_bytes(LABELS))
    (folder / "t10k-images-idx3-ubyte").write_bytes(idx_bytes(IMAGES[:2]))
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx_bytes(LABELS[:2])))
    monkeypatch.setenv("POLYGRAD_DATA", str(tmp_path))
    for found in (datasets.mnist(fashion=fashion), datasets.mnist(folder, fashion)):
        assert [t.shape for t in found] == [(5, 1, 4, 3), (5,), (2, 1, 4, 3), (2,)]
        np.testing.assert_array_equal(found[0].numpy()[:, 0], IMAGES)
        np.testing.assert_array_equal(found[1].numpy(), LABELS)
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx_bytes(LABELS)))
    with pytest.raises(ArgumentError, match="n labels"):
        datasets.mnist(folder)


@pytest.mark.parametrize(
    ("code", "dtype"),
    [(8, "uint8"), (9, "int8"), (11, "int16"), (12, "int32"), (13, "float32"), (14, "float64")],
)
def test_idx_files_of_every_dtype(tmp_path, code, dtype):
    array = np.array([[1, 2, 3], [-4 if dtype != "uint8" else 4, 5, 100]]).astype(dtype)
    (tmp_path / "a").write_bytes(idx_bytes(array, code))
    found = datasets.idx(tmp_path / "a")
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.numpy(), array)


def test_cifar_from_local_files(tmp_path):
    rng = np.random.default_rng(0)
    files = {}
    for name in [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]:
        files[name] = rng.integers(0, 10, (2, 3073), dtype=np.uint8).tobytes()
        (tmp_path / name).write_bytes(files[name])
    plain = [t.tolist() for t in datasets.cifar(tmp_path)]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, raw in files.items():
            entry = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            entry.size = len(raw)
            tar.addfile(entry, io.BytesIO(raw))
    archive = tmp_path / "archive" / "cifar-10-binary.tar.gz"
    archive.parent.mkdir()
    archive.write_bytes(out.getvalue())
    found = datasets.cifar(archive.parent)
    assert [t.shape for t in found] == [(10, 3, 32, 32), (10,), (2, 3, 32, 32), (2,)]
    assert [t.tolist() for t in found] == plain
    first = np.frombuffer(files["data_batch_1.bin"], np.uint8)
    assert found[1].tolist()[0] == first[0] and found[0][0, 0, 0, 0].item() == first[1]
    (tmp_path / "data_batch_3.bin").write_bytes(b"short")
    with pytest.raises(ArgumentError, match="records of 3073 bytes"):
        datasets.cifar(tmp_path)


def test_missing_files_are_an_error_that_says_where_to_put_them(tmp_path, monkeypatch):
    monkeypatch.setenv("POLYGRAD_DATA", str(tmp_path))
    for read in (datasets.mnist, datasets.cifar):
        with pytest.raises(ArgumentError, match="put it there"):
            read()


@pytest.mark.parametrize(
    "bad",
    [b"", b"\0\0\x08", b"\0\0\x07\x01\0\0\0\1a", b"\0\0\x08\xff", idx_bytes(IMAGES)[:-1], b"\x1f\x8bxx"],
)
def test_damaged_idx_files_are_refused(tmp_path, bad):
    (tmp_path / "a").write_bytes(bad)
    with pytest.raises(
        ArgumentError, match=r"idx: (expected|the gzip data is damaged|.* is not an IDX file)"
    ):
        datasets.idx(tmp_path / "a")
