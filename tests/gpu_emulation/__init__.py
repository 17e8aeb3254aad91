"""GPU kernels on the CPU: the text of a kernel as C++, and machines made of it (`device.py`). For tests."""
