"""Optimizers, schedules of their learning rates, and gradient clipping."""

from polygrad.nn.adagrad import Adadelta, Adagrad, Rprop
from polygrad.nn.adam import LAMB, Adam, AdamW, RMSprop
from polygrad.nn.adam_variants import Adamax, NAdam, RAdam
from polygrad.nn.clipping import clip_grad_norm_, clip_grad_value_
from polygrad.nn.optimizer import Optimizer, OptimizerGroup
from polygrad.nn.schedulers import (
    CosineAnnealingLR,
    ExponentialLR,
    LinearLR,
    LRScheduler,
    MultiStepLR,
    OneCycleLR,
    SequentialLR,
    StepLR,
)
from polygrad.nn.sgd import ASGD, LARS, SGD, Muon

__all__ = [
    "ASGD",
    "LAMB",
    "LARS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "CosineAnnealingLR",
    "ExponentialLR",
    "LRScheduler",
    "LinearLR",
    "MultiStepLR",
    "Muon",
    "NAdam",
    "OneCycleLR",
    "Optimizer",
    "OptimizerGroup",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SequentialLR",
    "StepLR",
    "clip_grad_norm_",
    "clip_grad_value_",
]
