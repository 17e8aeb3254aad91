"""Parameter groups: parameters with common options.

As torch's `param_groups`. Learning rates are Tensors of the optimizer, so that captured steps see changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

from polygrad.errors import ArgumentError
from polygrad.tensor.tensor import Tensor


@dataclass(slots=True)
class GroupRecord:
    """An optimizer's data about a group. It has no `__dict__`, so that `nn.state.get_state_dict` finds
    Tensors only in the optimizer itself.

    `numbers`: the options that the group overrides. `first_lr`: the rate before any schedule. `initial_lr`:
    the value of `lr` when its first scheduler was made.
    """

    params: list[Tensor]
    numbers: dict[str, Any]
    first_lr: float
    initial_lr: float | None = None


class ParamGroup(MutableMapping[str, Any]):
    """Group number `index` of an optimizer: `group["params"]`, `group["lr"]`, `group["weight_decay"]`, ...

    Options that the group does not override are attributes of the optimizer. `lr` is a Tensor; setting it
    writes to the Tensor. `betas` are b1 and b2. Raises ArgumentError for an unknown name and for invalid
    numbers.
    """

    __slots__ = ("_optimizer", "_record", "index")

    def __init__(self, optimizer: Any, index: int) -> None:
        self._optimizer, self.index = optimizer, index
        self._record: GroupRecord = optimizer._records[index]

    @property
    def optimizer(self) -> Any:
        """The optimizer whose group it is."""
        return self._optimizer

    @property
    def params(self) -> list[Tensor]:
        """All Tensors that the group was made with, in order."""
        return self._record.params

    @property
    def first_lr(self) -> float:
        """The learning rate before any schedule."""
        return self._record.first_lr

    @property
    def initial_lr(self) -> float | None:
        """The value of `lr` when its first scheduler was made."""
        return self._record.initial_lr

    @property
    def owner(self) -> str:
        """The optimizer's class, for errors; with the group's number if it is not the first."""
        name = type(self._optimizer).__name__
        return f"{name}: param group {self.index}" if self.index else name

    @property
    def lr(self) -> Tensor:
        """The learning rate, of shape (1,)."""
        out: Tensor = self._optimizer.group_lr[self.index] if self.index else self._optimizer.lr
        return out

    def __getitem__(self, name: str) -> Any:
        if name in ("params", "lr"):
            return getattr(self, name)
        if name == "initial_lr" and self.initial_lr is not None:
            return self.initial_lr
        if name == "betas" and "b1" in self._optimizer._options:
            return self["b1"], self["b2"]
        if name not in self._optimizer._options:
            raise KeyError(name)
        return self._record.numbers.get(name, getattr(self._optimizer, name))

    def __setitem__(self, name: str, value: Any) -> None:
        if name == "lr":
            value = value if isinstance(value, Tensor) else float(value)
            with Tensor.no_grad():
                self.lr.assign(value)
        elif name == "initial_lr":
            self._record.initial_lr = float(value)
        else:
            before = dict(self._record.numbers)
            try:
                self.set_numbers({name: value})
            except ArgumentError:
                self._record.numbers = before
                raise

    def set_numbers(self, numbers: Mapping[str, Any]) -> None:
        """Override options of the optimizer with `numbers`. Raises ArgumentError."""
        options, group_numbers = self._optimizer._options, self._record.numbers
        for name, value in numbers.items():
            if name == "betas" and "b1" in options:
                group_numbers["b1"], group_numbers["b2"] = value
            elif name in options:
                group_numbers[name] = value
            else:
                raise ArgumentError(f"{self.owner}: expected {', '.join(('lr', *options))}, got {name!r}")
        self._optimizer._check(self)

    def __delitem__(self, name: str) -> None:
        del self._record.numbers[name]

    def __iter__(self) -> Iterator[str]:
        yield from ("params", "lr", *self._optimizer._options)
        if self.initial_lr is not None:
            yield "initial_lr"

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        numbers = {k: v for k, v in self.items() if k not in ("params", "lr")}
        return f"<ParamGroup {self.index}: {len(self.params)} parameters, {numbers}>"
