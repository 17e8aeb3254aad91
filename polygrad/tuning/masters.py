"""16-bit weights that are trained by float32 copies of them (Micikevicius et al., 2018)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError
from polygrad.helpers import dedup
from polygrad.nn.optimizer import Optimizer
from polygrad.tensor.tensor import Tensor


class MasterWeights:
    """An optimizer of float32 copies of `params`. The copies get the gradients of `params`; after each step
    the weights become the rounded copies. Small steps, which would be lost in a 16-bit weight, add up in its
    copy.

    `make`: makes the optimizer of the copies: `lambda params: nn.optim.AdamW(params, lr=1e-5)`. It may stand
    wherever an optimizer may, in `compile_step` and `Instance.optimizer`. Raises ArgumentError where there is
    no float.

    >>> from polygrad import Tensor, nn
    >>> w = nn.Parameter(Tensor([1.0]).cast("bfloat16"))
    >>> optimizer = MasterWeights([w], lambda params: nn.optim.SGD(params, lr=0.001))
    >>> with Tensor.train():
    ...     for _ in range(10):
    ...         optimizer.zero_grad()
    ...         _ = w.float().sum().backward()
    ...         _ = optimizer.step()
    >>> round(optimizer.masters[0].item(), 4)
    0.99
    """

    def __init__(self, params: Sequence[Tensor], make: Callable[[list[Tensor]], Optimizer]) -> None:
        self.params = [p for p in dedup(params) if p.dtype.is_float and p.requires_grad is not False]
        if not self.params:
            raise ArgumentError(
                "MasterWeights: expected at least one float that requires a gradient, got none"
            )
        with Tensor.no_grad():
            self.masters = [p.detach().cast(dtypes.float32).clone().realize() for p in self.params]
        for master in self.masters:
            master.requires_grad = True
        self.optimizer = make(self.masters)

    @property
    def lr(self) -> Tensor:
        """The learning rate, which may be assigned."""
        return self.optimizer.lr

    @property
    def param_groups(self) -> list[Any]:
        """The groups of the optimizer, with the copies in them."""
        return self.optimizer.param_groups

    def clip_gradients(self, max_norm: float | None = None, max_value: float | None = None) -> None:
        """See `Optimizer.clip_gradients`."""
        self.optimizer.clip_gradients(max_norm, max_value)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients."""
        for p, master in zip(self.params, self.masters):
            p.grad = None if set_to_none or p.grad is None else p.grad.detach().zeros_like()
            master.grad = None

    def schedule_step(self) -> list[Tensor]:
        """`step`, lazily: the Tensors to realize."""
        with Tensor.no_grad():
            for p, master in zip(self.params, self.masters):
                master.grad = None if p.grad is None else p.grad.cast(master.dtype)
        changed = self.optimizer.schedule_step()
        with Tensor.no_grad():
            for p, master in zip(self.params, self.masters):
                p.assign(master.detach().cast(p.dtype))
        return [*changed, *self.params]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """See `Optimizer.step`."""
        loss = None if closure is None else closure()
        changed = self.schedule_step()
        changed[0].realize(*changed[1:])
        return loss

    def state_dict(self) -> dict[str, Tensor]:
        """The copies, and the state of their optimizer."""
        copies = {f"masters.{i}": t for i, t in enumerate(self.masters)}
        return copies | {f"optimizer.{k}": t for k, t in self.optimizer.state_dict().items()}

    def load_state_dict(self, state_dict: dict[str, Tensor]) -> None:
        """Continue from a `state_dict`; the weights become the rounded copies. Raises ArgumentError,
        ShapeError."""
        optimizer_state = {
            k.removeprefix("optimizer."): t for k, t in state_dict.items() if k.startswith("optimizer.")
        }
        self.optimizer.load_state_dict(optimizer_state)
        with Tensor.no_grad():
            for i, (p, master) in enumerate(zip(self.params, self.masters)):
                value = state_dict.get(f"masters.{i}")
                if value is None or value.shape != master.shape:
                    raise ArgumentError(f"load_state_dict: masters.{i}: expected a Tensor of {master.shape}")
                master.assign(value.to(master.device))
                p.assign(master.detach().cast(p.dtype))
        self.masters[0].realize(*self.masters[1:], *self.params)
