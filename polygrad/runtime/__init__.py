"""Memory and launches. A runtime sees Programs, never UOps: `interface.py` defines what each device
implements.

`program.py` is the Program, the waist between compiler and runtimes. Runtimes analyse nothing: a kernel says
whether it is `parallel` and which pointers it `writes`, a launch whether a `barrier` comes before it. The
format has a version; a reader refuses all others, and every field is required.

`buffer.py` counts writes (`Allocation.version`), so nodes for older contents of memory are recognised.
`sharded.py` is memory on several devices. `gpu.py` is the bookkeeping that GPUs share. `grid.py` evaluates
grids, which may contain Variables.
"""
