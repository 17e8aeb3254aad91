"""What weights in few bits cost: writes docs/internals/packed_weights.md.

    python scripts/packed_weights_page.py

A small Llama learns the sonnets of examples/data, letter by letter, for a minute or two. Then its weights
are packed in each kind, and its perplexity on sonnets that it has not seen, and its scores, are compared
with those of the weights in float32; also with activations in 8 bits. The speed is that of one product of a
matrix with one row, in one thread, as the least time of many, with the operands in the processor's caches
where they fit.
"""

from __future__ import annotations

import copy
import math
import random
import time
from pathlib import Path
from typing import Any

import numpy as np

from polygrad import Tensor, TinyJit, compile_step, nn, quantize, set_num_threads
from polygrad.models.fields import Fields
from polygrad.models.llama import Decoder, read_config
from polygrad.nn.integer_products import CODES
from polygrad.nn.packed import linear
from polygrad.nn.quantization import KINDS

ROOT = Path(__file__).resolve().parent.parent
TEXT = ROOT / "examples" / "data" / "sonnets.txt"
PAGE = ROOT / "docs" / "internals" / "packed_weights.md"
LENGTH, BATCH, STEPS, RATE = 128, 16, 400, 2e-3
ROWS, COLUMNS = 4096, 1024  # of the matrix whose product is timed
DEVICES = ("CPU", "WASM")


def letters() -> tuple[np.ndarray, int]:
    """The text as numbers of letters, and how many letters there are."""
    text = TEXT.read_text(encoding="utf-8")
    known = sorted(set(text))
    return np.array([known.index(c) for c in text], np.int32), len(known)


def trained_model(tokens: np.ndarray, vocabulary: int) -> Any:
    """A Llama of 2.2 million weights that has read `tokens`."""
    Tensor.manual_seed(1)
    model = Decoder(
        read_config(
            Fields(
                {
                    "vocab_size": vocabulary,
                    "hidden_size": 256,
                    "intermediate_size": 512,
                    "num_hidden_layers": 3,
                    "num_attention_heads": 4,
                    "max_position_embeddings": LENGTH,
                }
            )
        )
    )
    optimizer = nn.optim.AdamW(nn.state.get_parameters(model), lr=RATE, weight_decay=0.1)
    rng = random.Random(1)

    def batch() -> Tensor:
        starts = [rng.randrange(len(tokens) - LENGTH) for _ in range(BATCH)]
        return Tensor(np.stack([tokens[s : s + LENGTH] for s in starts]))

    def loss_of(model: Any, ids: Tensor) -> Tensor:
        found: Tensor = model.forward(input_ids=ids, labels=ids)["loss"]
        return found

    step = compile_step(loss_of, model, optimizer, batch())
    for i in range(STEPS):
        loss = step.run(batch())
        if i % 50 == 0 or i == STEPS - 1:
            print(f"step {i}: loss {loss.item():.3f}", flush=True)
    return model


def scores(model: Any, tokens: np.ndarray) -> tuple[np.ndarray, float]:
    """The logits of a text in pieces, and its perplexity."""
    pieces = tokens[: len(tokens) // LENGTH * LENGTH].reshape(-1, LENGTH)
    with Tensor.no_grad():
        logits = np.concatenate(
            [model(Tensor(pieces[i : i + BATCH])).numpy() for i in range(0, len(pieces), BATCH)]
        )
    shifted = logits[:, :-1] - logits[:, :-1].max(-1, keepdims=True)
    log_sums = np.log(np.exp(shifted.astype(np.float64)).sum(-1))
    chosen = np.take_along_axis(shifted, pieces[:, 1:, None].astype(np.int64), -1)[..., 0]
    return logits, math.exp(float((log_sums - chosen).mean()))


def some_weight(kind: str, device: str) -> nn.PackedWeight:
    rng = np.random.default_rng(0)
    found = KINDS[kind]
    if found.pack is not None:
        return nn.PackedWeight.of(
            Tensor(rng.standard_normal((ROWS, COLUMNS)).astype(np.float32), device), kind
        )
    assert found.block is not None
    blocks = rng.integers(0, 100, (ROWS, COLUMNS // found.block, found.nbytes)).astype(np.uint8)
    return nn.PackedWeight.of_blocks(Tensor(blocks, device), kind)


def weights_per_ns(kind: str | None, device: str, activations: str = "float32") -> float:
    """Of a product with one row; None: of float32."""
    rng = np.random.default_rng(0)
    x = Tensor(rng.standard_normal((1, COLUMNS)).astype(np.float32), device).realize()
    plain = Tensor(rng.standard_normal((ROWS, COLUMNS)).astype(np.float32), device).realize()
    weight: Any = plain if kind is None else some_weight(kind, device).with_activations(activations)
    with Tensor.no_grad():
        product = TinyJit(lambda x: linear(x, weight))
        for _ in range(3):
            product(x).numpy()
        least = math.inf
        for _ in range(80):
            start = time.process_time()
            product(x)
            least = min(least, time.process_time() - start)
    return ROWS * COLUMNS / least / 1e9


def main() -> None:
    """Trains, measures, and writes the page."""
    set_num_threads(1)
    tokens, vocabulary = letters()
    split = len(tokens) * 9 // 10
    model = trained_model(tokens[:split], vocabulary)
    expected, plain = scores(model, tokens[split:])
    speeds = [f"{weights_per_ns(None, d):.1f}" for d in DEVICES]
    rows = [["float32", "32.00", f"{plain:.4f}", "", "", "", "", *speeds, *[""] * len(DEVICES)]]
    for kind in KINDS:
        weight = some_weight(kind, "CPU")
        row = [kind, f"{weight.nbytes() * 8 / weight.numel():.2f}", *[""] * 5]
        if KINDS[kind].pack is not None:
            packed = quantize(copy.deepcopy(model), kind, activations="float32")
            logits, perplexity = scores(packed, tokens[split:])
            differences = abs(logits - expected)
            row[2:5] = [f"{perplexity:.4f}", f"{differences.max():.3f}", f"{differences.mean():.4f}"]
        if KINDS[kind].pack is not None and kind in CODES:
            packed = quantize(copy.deepcopy(model), kind, activations="int8")
            rounded, perplexity = scores(packed, tokens[split:])
            row[5:] = [f"{perplexity:.4f}", f"{abs(rounded - logits).mean():.4f}"]
        row += [f"{weights_per_ns(kind, d):.1f}" for d in DEVICES]
        by_int8 = [f"{weights_per_ns(kind, d, 'int8'):.1f}" if kind in CODES else "" for d in DEVICES]
        rows.append([*row, *by_int8])
        print(*rows[-1], flush=True)
    spread = f"{expected.std():.2f}"
    head = ["kind", "bits a weight", "perplexity", "largest difference", "mean difference",
            "perplexity, int8", "mean difference by int8",
            *(f"{d}: weights/ns" for d in DEVICES), *(f"{d}, int8" for d in DEVICES)]  # fmt: skip
    lines = ["| " + " | ".join(r) + " |" for r in [head, ["---"] * len(head), *rows]]
    PAGE.write_text(_TEXT.format(table="\n".join(lines), spread=spread, rows=ROWS, columns=COLUMNS), "utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


_TEXT = """# What weights in few bits cost

Made by `python scripts/packed_weights_page.py`. A Llama of three layers learned sonnets letter by letter; its
weights were packed by `polygrad.quantize`, those of its embedding and its scores too. Perplexity is that of
sonnets that it had not seen, differences are those of its scores, whose standard deviation is {spread}. Kinds
without these are only read from files. The columns *int8* are with activations in 8 bits; differences there
are those from the same weights with activations in float32. Weights per nanosecond: of the product of a
{rows} by {columns} matrix with one row, by one thread, with the matrix in the processor's caches where it
fits; larger matrices wait for memory, and the fewer bits, the less.

{table}

How they are read is said in `polygrad/nn/quantization.py`: a weight is an expression over planes of bytes,
and is computed inside of the product's kernel. With more than 8 rows it is computed once, to memory. With
activations in 8 bits (`polygrad/nn/integer_products.py`) the product is one of bytes, for any number of rows:
VPDPBUSD of x86, or the dot product of relaxed SIMD. That is the default where a device has these.
"""


if __name__ == "__main__":
    main()
