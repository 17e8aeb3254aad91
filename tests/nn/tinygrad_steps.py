"""Runs in a process of its own: what tinygrad's optimizers make of parameters, as JSON.

Standard input: {name: [class, keyword arguments, x, y, parameters]}, the first of which is a matrix, the
second, if there is one, a vector.
"""

from __future__ import annotations

import json
import sys

from tinygrad import Tensor
from tinygrad.nn import optim


def steps(kind, kwargs, x, y, arrays):
    params = [Tensor(a).realize() for a in arrays]
    for p in params:
        p.requires_grad = True
    opt = getattr(optim, kind)(params, **kwargs)
    for _ in range(2):
        opt.zero_grad()
        logits = Tensor(x) @ params[0]
        logits = logits + params[1] if len(params) > 1 else logits
        logits.sparse_categorical_crossentropy(Tensor(y)).backward()
        opt.step()
    return [p.tolist() for p in params]


json.dump({name: steps(*case) for name, case in json.load(sys.stdin).items()}, sys.stdout)
