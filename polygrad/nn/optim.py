"""Optimizers, schedules of their learning rates, and gradient clipping."""

from polygrad.nn.adam import LAMB, Adam, AdamW, RMSprop
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
from polygrad.nn.sgd import LARS, SGD, Muon

__all__ = [
    "LAMB",
    "LARS",
    "SGD",
    "Adam",
    "AdamW",
    "CosineAnnealingLR",
    "ExponentialLR",
    "LRScheduler",
    "LinearLR",
    "MultiStepLR",
    "Muon",
    "OneCycleLR",
    "Optimizer",
    "OptimizerGroup",
    "RMSprop",
    "SequentialLR",
    "StepLR",
    "clip_grad_norm_",
    "clip_grad_value_",
]
