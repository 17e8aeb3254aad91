"""Families of models, each in plain Python on `nn`, in a module of its own.

Common parts have their own modules: attention, rotary positions, feed-forward parts, caches. `hf`, GGUF and
ONNX load weights into them.
"""
