"""The colour of each library in every picture. Libraries that no picture has side by side may share one."""

from __future__ import annotations

COLORS = {
    "polygrad": "#1b6ef3",
    "jax-js": "#e8a33d",
    "onnxruntime-web": "#7a8b99",
    "tfjs-wasm": "#c9574a",
    "transformers.js": "#8a6fb0",
    "numpy": "#7a8b99",
    "torch": "#e8a33d",
    "torch-compile": "#b5843f",
    "tinygrad": "#c9574a",
}
