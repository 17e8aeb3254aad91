"""CPU and CC: one manager of memory, table of launches, captured step and team of threads (`base.py`).

They differ in their linkers: `device.py` has object files and LLVM's ORC, `cc.py` shared objects and
`dlopen`. CC's kernels come from the system's compiler with `-O3 -march=native -fwrapv -ffp-contract=off`,
so results are the same bits. Starting a compiler and a linker takes 50 ms of processor time, more than
compiling most kernels: six kernels that are missing at once are compiled together.

**Threads** (`threads.py`, `native.py`, `cc_native.py`). Workers are Python threads that spend their time in
one native function: no interpreter, no lock. All of a Program's launches are one job, which every thread
walks through, with the barriers that the launches have. A job costs a microsecond while the workers are
awake (0.15 ms after the last one), and some fifty to wake them. A Program has fewer threads for as long as
those are faster (`thread_choice.py`).
"""
