"""docs/families.md: the architectures of models that run here, and how near they are to transformers.

    python scripts/model_table.py                   write the page from the recorded measurements
    python scripts/model_table.py --check           fail if the page is not what it would write
    python scripts/model_table.py --record [NAME]   measure all architectures, or one, first

Recording takes some minutes.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from polygrad.models.registry import architecture, architectures, module_of

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "families.md"
RECORD = ROOT / "docs" / "names" / "models.json"
HEAD = ("Architecture", "task", "float32, CPU", "float32, WASM", "bfloat16, CPU", "tokens, cached", "whole")
TITLES = {
    "bert": "BERT", "clip": "CLIP", "convnext": "ConvNeXt", "distilbert": "DistilBERT", "gemma": "Gemma",
    "gpt2": "GPT-2", "llama": "Llama", "mistral": "Mistral", "mixtral": "Mixtral",
    "modernbert": "ModernBERT", "phi3": "Phi-3", "qwen": "Qwen", "resnet": "ResNet",
    "roberta": "RoBERTa, XLM-RoBERTa", "smollm3": "SmolLM 3", "t5": "T5", "vit": "ViT", "whisper": "Whisper",
}  # fmt: skip


def record(name: str | None) -> None:
    """Measure, and write what was found beside what is recorded of other architectures."""
    import model_families  # it needs torch and transformers, which a page that is only checked does not

    known = json.loads(RECORD.read_text())["architectures"] if name is not None else {}
    configurations = model_families.cases()
    for each in architectures() if name is None else [name]:
        found = asdict(model_families.measure(configurations[each]))
        known[each] = {"configurations": len(configurations[each])} | {
            key: float(f"{value:.1e}") if isinstance(value, float) else value for key, value in found.items()
        }
        print(each, known[each], file=sys.stderr)
    data = {
        "transformers": importlib.metadata.version("transformers"),
        "architectures": {each: known[each] for each in architectures() if each in known},
    }
    RECORD.write_text(json.dumps(data, indent=1) + "\n")


def page() -> str:
    """The text of docs/families.md."""
    data = json.loads(RECORD.read_text())
    measured = data["architectures"]
    count = sum(found["configurations"] for found in measured.values())
    lines = [
        "# Models: what runs, and how near",
        "",
        "This page is made by `python scripts/model_table.py`. [The guide](guides/models.md) says how to "
        "load, train and save models.",
        "",
        f"{len(architectures())} architectures, by the names that a config.json has. Each was measured with "
        f"small models of random weights, {count} configurations in all, which transformers "
        f"{data['transformers']} wrote and `hf.load_hf` read. Differences are the largest one of all "
        "outputs, hidden states among them, divided by the output's largest value. Those in bfloat16 are to "
        "transformers' float32: they are what it costs to round the weights. Tokens are the likeliest ones, "
        "one after the other, and how many of them are transformers': with a cache of keys and values "
        "(`generate`), and by one call that sees the whole text.",
        "",
        "Where a token's experts are chosen by scores (Mixtral, Qwen's mixtures), rounded weights may choose "
        "others, and its state is another then. Phi-3 with longrope was given a prompt that is long: the "
        "cache here has the frequencies of long texts from the start, where transformers makes its cache "
        "anew when a text becomes long.",
        "",
    ]
    for module in sorted({module_of(name) for name in architectures()}):
        rows = [_row(name, measured[name]) for name in architectures() if module_of(name) == module]
        lines += [f"## {TITLES[module]}", "", f"`polygrad/models/{module}.py`", ""]
        lines += [_line(*HEAD), _line(*["---"] * 2, *["---:"] * 5), *rows, ""]
    return "\n".join(lines)


def _row(name: str, found: dict[str, Any]) -> str:
    numbers = [f"{found[key]:.1e}" for key in ("cpu", "wasm", "bfloat16")]
    count = found["tokens"]
    tokens = ["", ""] if count is None else [f"{found[k]} of {count}" for k in ("same_cached", "same_whole")]
    return _line(f"`{name}`", architecture(name).task, *numbers, *tokens)


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail if the page is not current")
    parser.add_argument("--record", nargs="?", const="", metavar="NAME", help="measure all, or one, first")
    options = parser.parse_args()
    if options.record is not None:
        record(options.record or None)
    text = page()
    if options.check:
        if PAGE.read_text() != text:
            sys.exit("docs/families.md is not current: run python scripts/model_table.py")
        return
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
