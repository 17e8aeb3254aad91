"""`write_c`: captured steps as a C file, its header, and a file of large weights beside them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from polygrad.capture.c_file.header import header_text
from polygrad.capture.c_file.model import describe
from polygrad.capture.c_file.reference import builds_of, expected_results
from polygrad.capture.c_file.selftest import selftest_text, test_size
from polygrad.capture.c_file.source import source_text
from polygrad.capture.c_file.variants import variants_of
from polygrad.capture.c_options import COptions, Example
from polygrad.runtime.program import Program


def write_c(
    path: str | os.PathLike[str],
    steps: Mapping[str, tuple[Program, Example]],
    contents: Mapping[str, memoryview],
    options: COptions,
) -> None:
    """Write steps by name, and the `contents` of what they keep, to the file `path`, which ends in .c, a
    header beside it, and where there are weights that are not embedded, a safetensors file beside it.

    Raises ArgumentError and DTypeError as `describe` does; CaptureError and DeviceError as `retarget` and
    `expected_results` do.
    """
    target = Path(path)
    model = describe(target.stem, steps, contents, options)
    variants = variants_of(model)
    size = max(model.state_size + max(v.arena for v in variants), 1)
    test, test_bytes = "", 0
    if options.selftest:
        builds, test_bytes = builds_of(variants), test_size(model, size)
        expected = {entry.label: expected_results(model, entry, builds) for entry in model.entries}
        test = selftest_text(model, builds, expected, size)
    target.write_text(source_text(model, variants, test), encoding="utf-8")
    target.with_name(f"{model.stem}.h").write_text(header_text(model, size, test_bytes), encoding="utf-8")
    if model.weights:
        beside = sorted((v for v in model.values if v.place is not None), key=lambda v: v.place or 0)
        with open(target.with_name(f"{model.stem}.safetensors"), "wb") as f:
            f.write(model.weights)
            for value in beside:
                f.write(value.data)
