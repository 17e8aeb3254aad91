"""METAL: as CUDA, on `host.py` and PyObjC.

A run is one command buffer. Memory is shared with Python, and reads and writes wait for the last command
buffer that uses it. `runtime/grid_calls.py` is what both devices share: a Program's launches, bound for a
run.
"""
