"""Families of models, each in plain Python on `nn`, in a module of its own.

What they share stands once: attention, rotary positions, feed-forward parts, caches. `hf`, GGUF and ONNX fill
them with weights.
"""
