"""Memory and launches. A runtime sees Programs, never UOps: `interface.py` is what each device implements.

`program.py` is the Program, the waist between compiler and runtimes. Nothing here works anything out: a
kernel says whether it is `parallel` and which pointers it `writes`, a launch whether a `barrier` comes
before it. The format has a version; a reader refuses all others, and every field is required.

`buffer.py` counts writes (`Allocation.version`), so a node that says what memory held before is known to be
old. `sharded.py` is memory on several devices. `grid.py` evaluates grids, in which Variables may occur.
"""
