"""METAL: like CUDA, with `host.py` and PyObjC.

A run is one command buffer. Memory is shared with Python, and reads and writes wait for the last command
buffer that uses it. CUDA and METAL share `runtime/grid_calls.py`: the launches of a Program, bound for a run.
"""
