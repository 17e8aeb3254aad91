"""Losses.

`reduction`: 'mean', 'sum' or 'none'.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, Self

from polygrad.dtype import dtypes
from polygrad.errors import ArgumentError, DTypeError, ShapeError
from polygrad.helpers import prod
from polygrad.tensor.activations import ActivationsMixin
from polygrad.tensor.core.base import TensorLike, broadcast_constant
from polygrad.tensor.core.index_checks import check_index
from polygrad.tensor.core.sizes import same_size
from polygrad.tensor.indexing import IndexingMixin
from polygrad.uop.node import UOp
from polygrad.uop.ops import Ops

_NO_PATH = -1e30  # the logarithm of no probability: finite, so that gradients are no NaN


class LossesMixin(IndexingMixin, ActivationsMixin):
    """Losses."""

    __slots__ = ()

    def _apply_reduction(self, reduction: str) -> Self:
        if reduction not in ("mean", "sum", "none"):
            raise ArgumentError(f"reduction: expected 'mean', 'sum' or 'none', got {reduction!r}")
        return self.mean() if reduction == "mean" else self.sum() if reduction == "sum" else self

    def cross_entropy(
        self,
        Y: Self,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        weight: Self | None = None,
        ignore_index: int | None = None,
    ) -> Self:
        """The cross-entropy of these logits, classes along axis 1 (0 when 1-D).

        `Y`: class indices (integers, this shape without the class axis) or probabilities (this shape).
        `weight`: one per class; the mean over class indices is weighted. Class indices `ignore_index`
        (torch's is -100) count for nothing. Raises ShapeError, ArgumentError.

        No class is ignored by default, as tinygrad's; torch ignores -100: say `ignore_index=-100`.

        >>> Tensor([[2.0, 0.0], [0.0, 1.0]]).cross_entropy(Tensor([0, 1])).item()
        0.22009...
        """
        if not 0.0 <= label_smoothing <= 1.0:
            raise ArgumentError(f"cross_entropy: expected label_smoothing in 0..1, got {label_smoothing}")
        axis = 0 if self.ndim == 1 else 1
        label_shape = self.shape[:axis] + self.shape[axis + 1 :]
        n = self.shape[axis]
        logs = self.log_softmax(axis)
        if weight is not None:
            if weight.shape != (n,):
                raise ShapeError(f"cross_entropy: expected a weight of shape {(n,)}, got {weight.shape}")
            weight = weight.reshape([-1 if i == axis else 1 for i in range(self.ndim)])
        if Y.shape == label_shape:
            check_index("cross_entropy", Y, n, f"{n} classes", ignored=ignore_index)
        if (
            Y.shape == label_shape
            and not Y.dtype.is_float
            and (weight is not None or ignore_index is not None)
        ):
            return logs._weighted_nll(Y, axis, reduction, label_smoothing, weight, ignore_index)
        if weight is not None:
            logs = logs * weight
        if Y.shape == label_shape and not Y.dtype.is_float:
            label_mask = Y.is_class(n, axis)
            if label_smoothing:
                soft = (
                    label_mask._with(label_mask.uop.cast(logs.dtype)) * (1.0 - label_smoothing)
                    + label_smoothing / n
                )
                log_likelihood = (logs * soft).sum(axis)
            else:
                log_likelihood = label_mask.where(logs, 0).sum(axis)
        elif Y.shape == self.shape:
            soft = Y * (1.0 - label_smoothing) + label_smoothing / n if label_smoothing else Y
            log_likelihood = (logs * soft).sum(axis)
        else:
            raise ShapeError(
                f"cross_entropy: expected Y of {label_shape} (integers) or {self.shape}, got {Y.shape} "
                f"{Y.dtype}"
            )
        if reduction == "mean":
            count = prod(label_shape)
            log_likelihood = log_likelihood._in_accumulation_dtype()
            out = (
                log_likelihood.sum() * (-1.0 / count)
                if isinstance(count, int) and count
                else -log_likelihood.mean()
            )
            return logs._in_result_dtype(out)
        return (-log_likelihood)._apply_reduction(reduction)

    def _weighted_nll(
        self,
        Y: Self,
        axis: int,
        reduction: str,
        label_smoothing: float,
        weight: Self | None,
        ignore_index: int | None,
    ) -> Self:
        """cross_entropy of these log-probabilities with class indices that count differently."""
        n = self.shape[axis]
        label_mask = Y.is_class(n, axis)
        share = label_mask.where(1.0 if weight is None else weight, 0.0).sum(axis)
        weighted_logs = self if weight is None else self * weight
        if ignore_index is not None:
            counts = Y.ne(ignore_index)
            share = counts.where(share, 0.0)
        loss = label_mask.where(self, 0.0).sum(axis) * share
        if label_smoothing:
            smooth = weighted_logs.sum(axis)
            smooth = smooth if ignore_index is None else counts.where(smooth, 0.0)
            loss = loss * (1.0 - label_smoothing) + smooth * (label_smoothing / n)
        if reduction != "mean":
            return (-loss)._apply_reduction(reduction)
        return -loss.sum() / share.sum()

    def kl_div(self, Y: Self, reduction: str = "mean", log_target: bool = False) -> Self:
        """The Kullback-Leibler divergence of these log-probabilities from the probabilities Y, by element.

        `log_target`: Y are log-probabilities too. `reduction` may be 'batchmean': the sum over axis 0's size.
        Raises ShapeError, ArgumentError.

        >>> Tensor([0.5, 0.5]).log().kl_div(Tensor([0.25, 0.75]), reduction="sum").item()
        0.13081...
        """
        self._need_match(Y, "kl_div")
        loss = Y.exp() * (Y - self) if log_target else Y.xlogy(Y) - Y * self
        if reduction == "batchmean":
            return loss.sum() / self.shape[0] if self.shape else loss
        return loss._apply_reduction(reduction)

    def huber_loss(self, Y: Self, reduction: str = "mean", delta: float = 1.0) -> Self:
        """d² / 2 where |d| is up to `delta`, and delta (|d| - delta / 2) beyond, for d = self - Y.

        Raises ShapeError, ArgumentError.

        >>> Tensor([0.5, 3.0]).huber_loss(Tensor([0.0, 0.0])).item()
        1.3125
        """
        self._need_match(Y, "huber_loss")
        if delta <= 0:
            raise ArgumentError(f"huber_loss: expected a delta above 0, got {delta}")
        d = self - Y
        size = d.abs()
        return (size <= delta).where(d * d * 0.5, (size - 0.5 * delta) * delta)._apply_reduction(reduction)

    def sparse_categorical_crossentropy(
        self,
        Y: Self,
        ignore_index: int = -1,
        label_smoothing: float = 0.0,
        reduction: str = "mean",
    ) -> Self:
        """The cross-entropy of these logits, classes along the last axis, with the integers Y.

        Rows whose class is `ignore_index` count for nothing (-1, the default, names no class: such rows give
        0 but count, as in tinygrad). Raises ShapeError, DTypeError, ArgumentError.

        >>> Tensor([[2.0, 0.0]]).sparse_categorical_crossentropy(Tensor([0])).item()
        0.12692...
        """
        if not 0.0 <= label_smoothing <= 1.0:
            raise ArgumentError(
                f"sparse_categorical_crossentropy: expected label_smoothing in 0..1, got {label_smoothing}"
            )
        if Y.shape != self.shape[:-1]:
            raise ShapeError(
                f"sparse_categorical_crossentropy: expected Y of shape {self.shape[:-1]}, got {Y.shape}"
            )
        n = self.shape[-1]
        check_index("sparse_categorical_crossentropy", Y, n, f"{n} classes", ignored=ignore_index)
        logs = self.log_softmax(-1)
        log_likelihood = Y.is_class(n, -1).where(logs, 0).sum(-1)
        if label_smoothing:
            log_likelihood = log_likelihood * (1.0 - label_smoothing) + logs.mean(-1) * label_smoothing
        if ignore_index == -1:
            return (
                -log_likelihood.mean()
                if reduction == "mean"
                else (-log_likelihood)._apply_reduction(reduction)
            )
        counts = Y.ne(ignore_index)
        log_likelihood = counts.where(log_likelihood, 0)
        if reduction != "mean":
            return (-log_likelihood)._apply_reduction(reduction)
        return -log_likelihood.sum() / counts.sum()

    def nll_loss(
        self,
        Y: Self,
        weight: Self | None = None,
        ignore_index: int | None = None,
        reduction: str = "mean",
    ) -> Self:
        """The negative log-likelihood of these log-probabilities with integers Y; classes on axis 1 (or 0).

        `weight`: one per class; the mean is weighted. Raises ShapeError, DTypeError.

        >>> Tensor([[0.25, 0.75]]).log().nll_loss(Tensor([1])).item()
        0.28768...
        """
        axis = 0 if self.ndim == 1 else 1
        label_shape = self.shape[:axis] + self.shape[axis + 1 :]
        if Y.shape != label_shape:
            raise ShapeError(f"nll_loss: expected Y of shape {label_shape}, got {Y.shape}")
        n = self.shape[axis]
        check_index("nll_loss", Y, n, f"{n} classes", ignored=ignore_index)
        label_mask = Y.is_class(n, axis)
        loss = -label_mask.where(self, 0).sum(axis)
        if weight is None and ignore_index is None:
            return loss._apply_reduction(reduction)
        column = [-1 if i == axis else 1 for i in range(self.ndim)]
        share = (
            label_mask.where(weight.reshape(column), 0).sum(axis)
            if weight is not None
            else loss._with(broadcast_constant(loss.dtype, 1, loss.shape))
        )
        if ignore_index is not None:
            share = Y.ne(ignore_index).where(share, 0)
        loss = loss * share
        return loss.sum() / share.sum() if reduction == "mean" else loss._apply_reduction(reduction)

    def binary_crossentropy(self, Y: Self, reduction: str = "mean") -> Self:
        """The cross-entropy of these probabilities (between 0 and 1) with the labels Y, of the same shape.

        >>> Tensor([0.9, 0.2]).binary_crossentropy(Tensor([1.0, 0.0])).item()
        0.16425...
        """
        self._need_match(Y, "binary_crossentropy")
        return (-(Y * self.log()) - (1 - Y) * (1 - self).log())._apply_reduction(reduction)

    def binary_cross_entropy(self, Y: Self, reduction: str = "mean") -> Self:
        """`binary_crossentropy` whose logarithms are at least -100, as torch's: finite for 0 and 1.

        >>> Tensor([1.0, 0.0]).binary_cross_entropy(Tensor([1.0, 1.0]), "none").tolist()
        [0.0, 100.0]
        """
        self._need_match(Y, "binary_cross_entropy")
        out = -(Y * self.log().clamp(-100.0)) - (1 - Y) * (-self).log1p().clamp(-100.0)

        def slope(g: Self, _: Self, x: Self, y: Self) -> tuple[Self, Self]:
            return g * (x - y) / (x * (1 - x)).clamp(1e-12), g * ((1 - x).log() - x.log())

        return out._detached()._with_backward([self, Y], slope)._apply_reduction(reduction)

    def binary_crossentropy_logits(
        self,
        Y: Self,
        reduction: str = "mean",
        pos_weight: Self | None = None,
    ) -> Self:
        """The cross-entropy of sigmoid(self) with the labels Y, without overflow.

        `pos_weight` scales the positive part.

        >>> Tensor([2.0, -1.0]).binary_crossentropy_logits(Tensor([1.0, 0.0])).item()
        0.22009...
        """
        self._need_match(Y, "binary_crossentropy_logits")
        log_p, log_1_p = self.logsigmoid(), (-self).logsigmoid()
        positive = Y * log_p if pos_weight is None else Y * log_p * pos_weight
        return (-(positive + (1 - Y) * log_1_p))._apply_reduction(reduction)

    binary_cross_entropy_with_logits = binary_crossentropy_logits

    def _need_match(self, Y: Self, what: str) -> None:
        if len(Y.shape) != len(self.shape) or not all(map(same_size, Y.shape, self.shape)):
            raise ShapeError(f"{what}: expected Y of shape {self.shape}, got {Y.shape}")
        if Y.dtype.is_bool:
            raise DTypeError(f"{what}: expected numeric labels, got bool: use .float()")

    # --- of values

    def mse_loss(self, Y: Self, reduction: str = "mean") -> Self:
        """The squared difference from Y. Raises ShapeError, ArgumentError.

        >>> Tensor([1.0, 4.0]).mse_loss(Tensor([1.0, 2.0])).item()
        2.0
        """
        self._need_match(Y, "mse_loss")
        return (self - Y).square()._apply_reduction(reduction)

    def l1_loss(self, Y: Self, reduction: str = "mean") -> Self:
        """The magnitude of the difference from Y. Raises ShapeError, ArgumentError.

        >>> Tensor([1.0, 4.0]).l1_loss(Tensor([1.0, 2.0])).item()
        1.0
        """
        self._need_match(Y, "l1_loss")
        return (self - Y).abs()._apply_reduction(reduction)

    def smooth_l1_loss(self, Y: Self, reduction: str = "mean", beta: float = 1.0) -> Self:
        """d² / (2 beta) where |d| is less than `beta`, and |d| - beta / 2 beyond, for d = self - Y.

        Raises ShapeError, ArgumentError.

        >>> Tensor([0.5, 3.0]).smooth_l1_loss(Tensor([0.0, 0.0])).item()
        1.3125
        """
        if beta < 0:
            raise ArgumentError(f"smooth_l1_loss: expected a beta of at least 0, got {beta}")
        if beta == 0:
            return self.l1_loss(Y, reduction)
        return self.huber_loss(Y, "none", beta).div(beta)._apply_reduction(reduction)

    def gaussian_nll_loss(
        self, Y: Self, variance: Self, full: bool = False, eps: float = 1e-06, reduction: str = "mean"
    ) -> Self:
        """Y's negative log-likelihood under normal distributions with these means and variances.

        (log variance + (self - Y)² / variance) / 2, with variances of at least `eps`, which gradients do not
        see (Nix and Weigend, 1994). `full`: with the constant log(2 pi) / 2. `variance` has this shape, or
        one that broadcasts to it. Raises ShapeError, ArgumentError.

        >>> Tensor([1.0, 4.0]).gaussian_nll_loss(Tensor([1.0, 2.0]), Tensor([1.0, 4.0])).item()
        0.59657...
        """
        self._need_match(Y, "gaussian_nll_loss")
        if eps <= 0:
            raise ArgumentError(f"gaussian_nll_loss: expected an eps above 0, got {eps}")
        bounded = variance + (variance.maximum(eps) - variance)._detached()
        loss = (bounded.log() + (self - Y).square() / bounded) * 0.5
        return (loss + 0.5 * math.log(2 * math.pi) if full else loss)._apply_reduction(reduction)

    def poisson_nll_loss(
        self, Y: Self, log_input: bool = True, full: bool = False, eps: float = 1e-08, reduction: str = "mean"
    ) -> Self:
        """Y's negative log-likelihood under Poisson distributions with means exp(self), or self without
        `log_input` (then log(self + eps) is taken).

        `full`: with Stirling's approximation of log(Y!), where Y is above 1.
        Raises ShapeError, ArgumentError.

        >>> Tensor([0.0]).poisson_nll_loss(Tensor([2.0])).item()
        1.0
        """
        self._need_match(Y, "poisson_nll_loss")
        loss = self.exp() - Y * self if log_input else self - Y * (self + eps).log()
        if full:
            large = (Y > 1).where(Y, 2.0)
            stirling = large * large.log() - large + 0.5 * (2 * math.pi * large).log()
            loss = loss + (Y > 1).where(stirling, 0.0)
        return loss._apply_reduction(reduction)

    def ctc_loss(
        self,
        targets: Self,
        input_lengths: TensorLike,
        target_lengths: TensorLike,
        blank: int = 0,
        reduction: str = "mean",
        zero_infinity: bool = False,
    ) -> Self:
        """Connectionist temporal classification (Graves et al., 2006) of log-probabilities.

        self: (t, n, classes), or (t, classes).

        targets: (n, s) integers, or all one after the other (which reads the lengths); no `blank`s.
        Lengths: n integers each. 'mean' divides each loss by its target's length first. A target that is
        too long has an infinite loss, 0 with `zero_infinity`. There is a kernel for each of the t steps.
        Raises ShapeError, DTypeError, ArgumentError.

        >>> logs = Tensor([[[0.5, 0.5]], [[0.5, 0.5]]]).log()
        >>> logs.ctc_loss(Tensor([[1]]), [2], [1]).item()
        0.28768...
        """
        if self.ndim == 2:
            batch_loss = self.unsqueeze(1).ctc_loss(
                targets.unsqueeze(0) if targets.ndim == 1 else targets,
                targets._tensor(input_lengths).reshape(1),
                targets._tensor(target_lengths).reshape(1),
                blank, "none", zero_infinity,
            )  # fmt: skip
            lengths = targets._tensor(target_lengths).reshape(1).maximum(1)
            return (
                (batch_loss / lengths if reduction == "mean" else batch_loss)
                .reshape(())
                ._apply_reduction(reduction)
            )
        ins, outs = targets._tensor(input_lengths), targets._tensor(target_lengths)
        self._check_ctc(targets, ins, outs, blank)
        if targets.ndim == 1:
            targets = targets._in_rows(outs)
        loss = self._in_accumulation_dtype()._ctc(targets, ins, outs, blank)
        endless = loss > -0.5 * _NO_PATH
        loss = endless.where(0.0 if zero_infinity else math.inf, loss)
        loss = loss / outs.maximum(1) if reduction == "mean" else loss
        return self._in_result_dtype(loss._apply_reduction(reduction))

    def _check_ctc(self, targets: Self, ins: Self, outs: Self, blank: int) -> None:
        if self.ndim != 3 or targets.ndim not in (1, 2) or not all(isinstance(n, int) for n in self.shape):
            raise ShapeError(
                f"ctc_loss: expected log-probabilities (t, n, classes) and targets (n, s), got {self.shape} "
                f"and {targets.shape}"
            )
        n = self.shape[1]
        if ins.shape != (n,) or outs.shape != (n,) or (targets.ndim == 2 and targets.shape[0] != n):
            raise ShapeError(
                f"ctc_loss: expected {n} targets and lengths, got targets {targets.shape}, input_lengths "
                f"{ins.shape} and target_lengths {outs.shape}"
            )
        if not 0 <= blank < self.shape[2]:
            raise ArgumentError(f"ctc_loss: expected a blank in 0..{self.shape[2] - 1}, got {blank}")
        for x in (targets, ins, outs):
            x._need_int("ctc_loss: targets and lengths")

    def _in_rows(self, lengths: Self) -> Self:
        """Concatenated targets as rows, padded with zeros."""
        sizes = lengths._read()
        width = max(sizes, default=0)
        ends = list(itertools.accumulate(sizes))
        if self.shape[0] != (ends[-1] if ends else 0):
            raise ShapeError(f"ctc_loss: expected targets of all lengths {sizes}, got shape {self.shape}")
        rows = [self.shrink([(e - n, e)]).pad([(0, width - n)]) for e, n in zip(ends, sizes, strict=True)]
        return rows[0].stack(*rows[1:]) if rows else self.reshape(0, 0)

    def _ctc(self, targets: Self, ins: Self, outs: Self, blank: int) -> Self:
        """The losses by the forward algorithm, their gradients by the forward-backward algorithm.

        There are 2s + 1 states: blanks, and the targets between them. All steps share their kernels,
        because the number of the step is read from memory.
        """
        steps, n = int(self.shape[0]), int(self.shape[1])
        states = 2 * int(targets.shape[1]) + 1
        labels = targets.unsqueeze(-1).pad([None, None, (1, 0)], value=blank).flatten(1)
        labels = labels.pad([None, (0, 1)], value=blank)
        before = labels.pad([None, (2, 0)], value=blank).shrink([None, (0, states)])
        may_skip = labels.ne(blank) & labels.ne(before)
        may_skip, ins, outs = (x._with(x.uop.contiguous()) for x in (may_skip, ins, outs))
        terms = self.maximum(_NO_PATH).gather(2, labels.unsqueeze(0).expand(steps, n, states))
        terms = terms._with(terms.uop.contiguous())
        place = self._of(UOp(Ops.ARANGE, dtypes.int32, (), states), self._device)
        last = outs.unsqueeze(1) * 2
        ends = (place.eq(last) | place.eq(last - 1)).where(0.0, terms.const_like(_NO_PATH)[0])

        def backward(g: Self, loss: Self, terms: Self) -> Self:
            before, after = terms._paths_to(may_skip, ins), terms._paths_from(may_skip, ins, ends)
            part = before[0].stack(*before[1:]) + after[0].stack(*after[1:]) + loss.unsqueeze(-1)
            is_step = self._of(UOp(Ops.ARANGE, dtypes.int32, (), steps)).unsqueeze(1) < ins
            return is_step.unsqueeze(-1).where(-part.minimum(0.0).exp() * g.unsqueeze(-1), 0.0)

        paths = terms._detached()._paths_to(may_skip, ins)[-1]
        return (-(paths + ends).logsumexp(1))._with_backward([terms], backward)

    def _count_in_memory(self, count: int, first: int, step: int) -> list[Self]:
        """`first`, `first` + step, ..., each stored in memory and computed from its predecessor."""
        start = self._of(broadcast_constant(dtypes.int32, first, (1,)).contiguous(), self._device)
        out = [start]
        for _ in range(count - 1):
            out.append(start._of((out[-1].uop + step).contiguous(), self._device))
        return out

    def _paths_to(self, may_skip: Self, ins: Self) -> list[Self]:
        """For each step, the log-probabilities of all paths that end in each state, its own term included."""
        steps, _, states = (int(k) for k in self.shape)
        first = self._of(UOp(Ops.ARANGE, dtypes.int32, (), states), self._device) < 2
        paths = first.where(self[0], _NO_PATH)
        out = [paths._with(paths.uop.contiguous())]
        for t in self._count_in_memory(steps, 0, 1)[1:]:
            paths = out[-1]
            previous, second_previous = (
                paths.pad([None, (k, 0)], value=_NO_PATH).shrink([None, (0, states)]) for k in (1, 2)
            )
            new_paths = _log_sum(paths, previous, may_skip.where(second_previous, _NO_PATH)) + self[
                t
            ].squeeze(0)
            paths = (ins.unsqueeze(1) > t).where(new_paths.maximum(_NO_PATH), paths)
            out.append(paths._with(paths.uop.contiguous()))
        return out

    def _paths_from(self, may_skip: Self, ins: Self, ends: Self) -> list[Self]:
        """For each step, the log-probabilities of all paths that continue from each state."""
        steps, _, states = (int(k) for k in self.shape)
        out = [ends._with(ends.uop.contiguous())]
        for t in self._count_in_memory(steps, steps - 1, -1)[:-1]:
            paths = out[-1] + self[t].squeeze(0)
            following, second_following = (
                x.pad([None, (0, k)], value=_NO_PATH).shrink([None, (k, states + k)])
                for x, k in ((paths, 1), (may_skip.where(paths, _NO_PATH), 2))
            )
            new_paths = (ins.unsqueeze(1) > t).where(
                _log_sum(paths, following, second_following).maximum(_NO_PATH), ends
            )
            out.append(new_paths._with(new_paths.uop.contiguous()))
        return out[::-1]


def _log_sum(a: Any, b: Any, c: Any) -> Any:
    """log(exp(a) + exp(b) + exp(c)), of finite numbers."""
    top = a.maximum(b).maximum(c)._detached()
    return ((a - top).exp() + (b - top).exp() + (c - top).exp()).log() + top
