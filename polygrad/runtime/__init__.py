"""Memory and launches. A runtime sees Programs, never UOps: `interface.py` is what each device implements.

`program.py` is the Program, the waist between compiler and runtimes. Runtimes analyse nothing: a kernel says
whether it is `parallel` and which pointers it `writes`, a launch whether a `barrier` comes before it. The
format has a version; a reader refuses all others, and every field is required.

`buffer.py` counts writes (`Allocation.version`), so a node that stands for older contents of its memory can
be recognised. `sharded.py` is memory on several devices. `gpu.py` is the bookkeeping of every GPU. `grid.py`
evaluates grids, in which Variables may occur.
"""
