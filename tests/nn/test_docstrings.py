"""Every layer, optimizer and scheduler has an example, which runs as it is written."""

from __future__ import annotations

import doctest
import inspect

import pytest

from polygrad import Device, Tensor, nn

CLASSES = {
    f"{where}{name}": member
    for where, module in (("nn.", nn), ("nn.optim.", nn.optim), ("nn.data.", nn.data))
    for name, member in vars(module).items()
    if inspect.isclass(member) and member.__module__.startswith("polygrad.nn.") and not name.startswith("_")
}


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_its_example_runs_and_prints_what_it_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Device, "DEFAULT", "CPU")  # as examples print
    text = inspect.cleandoc(CLASSES[name].__doc__ or "")
    test = doctest.DocTestParser().get_doctest(text, {"Tensor": Tensor, "nn": nn}, name, None, 0)
    assert test.examples, f"{name} has no example"
    printed: list[str] = []
    assert doctest.DocTestRunner().run(test, out=printed.append).failed == 0, "".join(printed)


def test_all_kinds_are_there() -> None:
    assert {"nn.Linear", "nn.optim.AdamW", "nn.optim.StepLR", "nn.data.History"} <= set(CLASSES)
