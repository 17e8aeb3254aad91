"""WebAssembly modules: written (`module.py`, `body.py`), read (`reader.py`), printed (`wat.py`).

All of them go by one table of instructions. Names are those of the WebAssembly specification. No UOps are
known here.
"""
