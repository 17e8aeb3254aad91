"""Captured steps over batches of tokens, with gradients that add up over several of them.

The loss of a step is the mean over all labels that count in all its batches. So each batch adds the sum of
its losses, divided by the number of labels of all batches: the gradient is that of one large batch, however
the rows are divided.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from polygrad.capture.step import CompiledStep, compile_step
from polygrad.dtype import dtypes
from polygrad.models.causal_lm import IGNORED_LABEL, CausalLM
from polygrad.nn.optimizer import zeros
from polygrad.tensor.tensor import Tensor
from polygrad.tuning.rows import TokenBatch


def summed_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The sum of the cross-entropies of all tokens but the first, as predicted from the tokens before each;
    see `next_token_loss`."""
    scores = logits[:, :-1].reshape(-1, logits.shape[-1])
    return scores.sparse_categorical_crossentropy(
        labels[:, 1:].flatten(), ignore_index=IGNORED_LABEL, reduction="sum"
    )


def batch_loss(module: CausalLM, ids: Tensor, labels: Tensor, positions: Tensor, texts: Tensor) -> Tensor:
    """`summed_loss` of a batch of rows with several texts each."""
    logits = module.forward(input_ids=ids, position_ids=positions, text_ids=texts)["logits"]
    return summed_loss(logits, labels)


class _Sums:
    """Gradients added up in memory of their own. It takes the place of an optimizer, or comes before one."""

    def __init__(self, params: Sequence[Tensor], optimizer: Any) -> None:
        self.params, self.optimizer = list(params), optimizer
        self.sums = [zeros(p) for p in self.params]

    def zero_grad(self) -> None:
        self.optimizer.zero_grad()


class _Add(_Sums):
    """Adds the gradients of a batch to the sums."""

    def schedule_step(self) -> list[Tensor]:
        with Tensor.no_grad():
            for p, total in zip(self.params, self.sums):
                if p.grad is not None:
                    total.assign(total + p.grad.cast(total.dtype))
        return self.sums


class _StepOnSums(_Sums):
    """Steps with the sums and the gradients of the last batch; the sums are 0 again."""

    def __init__(self, add: _Add) -> None:
        self.params, self.optimizer, self.sums = add.params, add.optimizer, add.sums

    def schedule_step(self) -> list[Tensor]:
        with Tensor.no_grad():
            for p, total in zip(self.params, self.sums):
                if p.grad is not None:
                    p.grad = (total + p.grad.cast(total.dtype)).contiguous()
        changed: list[Tensor] = self.optimizer.schedule_step()
        with Tensor.no_grad():
            for total in self.sums:
                total.assign(total * 0)
        return [*changed, *self.sums]


class Trainer:
    """Steps of an optimizer on lists of batches, as captured Programs: one for each length of rows, two where
    several batches make a step.

    `module`: the model. `optimizer`: has `params`, `zero_grad`, `schedule_step` and `lr`. `accumulates`:
    whether steps may have several batches.
    """

    def __init__(self, module: CausalLM, optimizer: Any, accumulates: bool = True) -> None:
        self.module, self.optimizer, self.accumulates = module, optimizer, accumulates
        self._add: _Add | None = None
        self._steps: dict[Any, CompiledStep] = {}

    def step(self, batches: Sequence[TokenBatch], rate: float) -> float:
        """One step with the gradient of all batches, at a learning rate; the mean loss of the labels that
        count."""
        total = max(sum(b.counted for b in batches), 1)
        loss = 0.0
        for i, batch in enumerate(batches):
            is_last = i == len(batches) - 1
            inputs = [
                *batch.tensors,
                Tensor([1 / total], dtype=dtypes.float32, device=batch.input_ids.device),
                Tensor([rate], dtype=dtypes.float32, device=self.optimizer.lr.device),
            ]
            kind = ("last" if is_last else "add") if self.accumulates else "alone"
            step = self._step(kind, inputs)
            step.run(*inputs)
            loss += step.loss_value()
        return loss

    def arena_bytes(self) -> int:
        """The memory of intermediates of the largest captured step."""
        return max((step.arena_bytes for step in self._steps.values()), default=0)

    def _step(self, kind: str, inputs: Sequence[Tensor]) -> CompiledStep:
        key = (kind, inputs[0].shape)
        if key not in self._steps:
            optimizer = self.optimizer
            used: Any = optimizer
            if kind != "alone":
                if self._add is None:
                    self._add = _Add(optimizer.params, optimizer)
                used = self._add if kind == "add" else _StepOnSums(self._add)

            def loss_of(
                module: Any, ids: Any, labels: Any, positions: Any, texts: Any, part: Any, rate: Any
            ) -> Tensor:
                optimizer.lr.assign(rate)
                loss: Tensor = batch_loss(module, ids, labels, positions, texts) * part
                return loss

            self._steps[key] = compile_step(loss_of, self.module, used, *inputs)
        return self._steps[key]


def mean_loss(module: CausalLM, batches: Iterable[TokenBatch]) -> float:
    """The mean loss of all labels that count in some batches, outside of training mode."""
    total = count = 0.0
    for batch in batches:
        with Tensor.no_grad(), Tensor.train(False):
            total += batch_loss(module, *batch.tensors).item()
        count += batch.counted
    return total / max(count, 1)
