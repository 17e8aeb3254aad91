"""Programs written once against the Tensor API that polygrad and tinygrad share.

A program is given `lib` (the module `polygrad` or `tinygrad`) and `make`, which makes its inputs, and returns
its outputs, not yet computed. Whatever it realizes on the way (a first optimizer step, say) is not compared.
"""

from tests.parity.programs import (  # noqa: F401 - each module enters its programs
    assignment,
    attention,
    convolution,
    gathering,
    losses,
    networks,
    normalisation,
    reductions,
)
from tests.parity.programs.registry import PROGRAMS, Program

__all__ = ["PROGRAMS", "Program"]
