"""The public API as data: what other languages bind from.

    python -m polygrad.manifest > manifest.json

`inspection` reads it off the package itself (signatures, annotations, docstrings); `reviewed` holds what
Python does not say in a form that another language can use, and its tests fail where something is missing.
"""
