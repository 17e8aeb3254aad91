"""TOY: the interpreter under another name, which counts what it runs."""

from __future__ import annotations

from dataclasses import replace

from polygrad.codegen.target import Target
from polygrad.engine.backends import interp
from polygrad.runtime.interface import Executable
from polygrad.runtime.interp.device import InterpRuntime
from polygrad.runtime.program import Program

programs = 0


class ToyRuntime(InterpRuntime):
    name = "TOY"

    def load(self, program: Program) -> Executable:
        global programs
        programs += 1
        return super().load(program)


BACKEND = replace(interp.BACKEND, target=Target("TOY"), open=ToyRuntime)
ODD = "not a backend"
