"""The table of architectures says the truth about the modules."""

from __future__ import annotations

import importlib
import pkgutil

import pytest

import polygrad.models
from polygrad.errors import ModelError
from polygrad.models import registry
from polygrad.models.architecture import Architecture
from polygrad.models.fields import Fields


def _declared() -> dict[str, str]:
    """The module of each architecture that a module declares."""
    found: dict[str, str] = {}
    for info in pkgutil.iter_modules(polygrad.models.__path__):
        module = importlib.import_module(f"polygrad.models.{info.name}")
        for entry in getattr(module, "ARCHITECTURES", ()):
            assert isinstance(entry, Architecture) and entry.name not in found, entry.name
            found[entry.name] = info.name
    return found


def test_each_architecture_is_in_the_module_that_the_table_says() -> None:
    assert registry._MODULES == _declared()
    assert registry.architectures() == sorted(registry._MODULES)


def test_an_architecture_is_found_by_its_name() -> None:
    for name in registry.architectures():
        assert registry.architecture(name).name == name
    assert registry.architecture_of(Fields({"architectures": ["BertModel"]})).name == "BertModel"


@pytest.mark.parametrize("names", [["OtherModel"], [], ["BertModel", "T5Model"], "BertModel", None, [3]])
def test_others_are_refused(names: object) -> None:
    with pytest.raises(ModelError, match="architecture"):
        registry.architecture_of(Fields({"architectures": names}))
