"""Optimizers, schedules of their learning rates, and gradient clipping."""

import sys
from typing import Any

from polygrad.missing import missing
from polygrad.nn.adagrad import Adadelta, Adagrad, Rprop
from polygrad.nn.adam import LAMB, Adam, AdamW, RMSprop
from polygrad.nn.adam_variants import Adamax, NAdam, RAdam
from polygrad.nn.clipping import clip_grad_norm_, clip_grad_value_
from polygrad.nn.cyclic import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from polygrad.nn.lbfgs import LBFGS
from polygrad.nn.optimizer import Optimizer, OptimizerGroup
from polygrad.nn.plateau import LambdaLR, MultiplicativeLR, ReduceLROnPlateau
from polygrad.nn.schedulers import (
    ChainedScheduler,
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LinearLR,
    LRScheduler,
    MultiStepLR,
    PolynomialLR,
    SequentialLR,
    StepLR,
)
from polygrad.nn.sgd import ASGD, LARS, SGD, Muon

__all__ = [
    "ASGD",
    "LAMB",
    "LARS",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "Muon",
    "NAdam",
    "OneCycleLR",
    "Optimizer",
    "OptimizerGroup",
    "PolynomialLR",
    "RAdam",
    "RMSprop",
    "ReduceLROnPlateau",
    "Rprop",
    "SequentialLR",
    "StepLR",
    "clip_grad_norm_",
    "clip_grad_value_",
]


def __getattr__(name: str) -> Any:
    raise AttributeError(
        missing("polygrad.nn.optim", "module 'polygrad.nn.optim'", name), name=name, obj=sys.modules[__name__]
    )
