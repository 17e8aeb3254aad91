"""The registry's entry for an architecture that a `config.json` may name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from polygrad.models.fields import Fields
from polygrad.models.names import Names


@dataclass(frozen=True)
class Architecture:
    """`name`: as in the `architectures` of a configuration. `task`: what it is for, by which
    `hf.instances.instance_class` finds its Instance. `build`: makes the model of a configuration, with random
    weights that are not computed. `names`: where a checkpoint keeps its weights.
    """

    name: str
    task: str
    build: Callable[[Fields], Any]
    names: Names = field(default_factory=Names)
