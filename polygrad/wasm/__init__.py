"""WebAssembly modules: writing (`module.py`, `body.py`), reading (`reader.py`), printing (`wat.py`).

All of them use one table of instructions. Names are those of the WebAssembly specification. This package does
not know UOps.
"""
