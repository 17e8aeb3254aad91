"""How far a small random model of each architecture is from what transformers computes with its weights."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
import hf_models
from encoder_cases import CASES
from model_checkpoints import difference, own_inputs, randomize, save, torch_inputs

from polygrad import Tensor, hf

TOKENS = 64  # that each model writes, unless it takes fewer


@dataclass
class Measurement:
    """Of one architecture: the largest difference of its outputs, of the largest value, and how many of the
    likeliest tokens, one after the other, are those of transformers; None: it does not write."""

    cpu: float = 0.0
    wasm: float = 0.0
    bfloat16: float = 0.0
    tokens: int | None = None
    same_cached: int | None = None
    same_whole: int | None = None

    def add(self, other: Measurement) -> None:
        """Keep the worse of each."""
        for name, value in asdict(other).items():
            own = getattr(self, name)
            if own is None or value is None:
                worse = own if value is None else value
            else:
                worse = own + value if name not in ("cpu", "wasm", "bfloat16") else max(own, value)
            setattr(self, name, worse)


def cases() -> dict[str, list[str]]:
    """The configurations of each architecture, by name: those of decoders, then those of the others."""
    found: dict[str, list[str]] = {}
    for name, (family, _) in hf_models.DECODERS.items():
        head = "GPT2LMHeadModel" if family == "GPT2" else f"{family}ForCausalLM"
        found.setdefault(head, []).append(name)
    for name, case in CASES.items():
        found.setdefault(type(case.model()).__name__, []).append(name)
    return found


def measure(names: list[str]) -> Measurement:
    """The worst of some configurations of one architecture."""
    out = Measurement()
    for name in names:
        out.add(_measure_decoder(name) if name in hf_models.DECODERS else _measure_other(name))
    return out


def _measured(error: Callable[..., float]) -> Measurement:
    return Measurement(
        cpu=error(device="CPU"),
        wasm=error(device="WASM"),
        bfloat16=error(device="CPU", dtype="bfloat16"),
    )


def _measure_decoder(name: str) -> Measurement:
    model, folder = hf_models.reference(name)
    ids = hf_models.token_ids(2, 21)
    with torch.no_grad():
        theirs = model(torch.tensor(ids), output_hidden_states=True)

    def error(**options: Any) -> float:
        with Tensor.no_grad():
            ours = hf.load_hf(folder, **options).forward(input_ids=ids, output_hidden_states=True)
        pairs = [*zip(ours["hidden_states"], theirs.hidden_states, strict=True)]
        return max(difference(a.float(), b) for a, b in [*pairs, (ours["logits"], theirs.logits)])

    out = _measured(error)
    # a model with other frequencies for long texts uses them from the start here, as its cache may be long
    prompt = hf_models.token_ids(20 if "long" in name else 9, seed=1).tolist()
    wanted = hf_models.greedy(name, prompt, TOKENS)
    instance = hf.load_hf(folder)
    cached = list(instance.generate(prompt, max_new_tokens=TOKENS, stop_tokens=()).tokens)
    # the likeliest token behind each part of the text, all of it computed at once
    with Tensor.no_grad():
        logits = instance.forward(input_ids=[[*prompt, *wanted[:-1]]])["logits"].numpy()[0]
    whole = logits[len(prompt) - 1 :].argmax(1).tolist()
    out.tokens, out.same_cached, out.same_whole = TOKENS, _same(cached, wanted), _same(whole, wanted)
    return out


def _measure_other(name: str) -> Measurement:
    case = CASES[name]
    reference, inputs = randomize(case.model()), case.inputs()
    folder = Path(tempfile.mkdtemp())
    save(reference, folder)
    with torch.no_grad():
        theirs = reference(**torch_inputs(inputs), **case.options, return_dict=True)
    mask = inputs.get("attention_mask")
    rows = None if mask is None else mask.astype(bool)

    def error(**options: Any) -> float:
        with Tensor.no_grad():
            ours = hf.load_hf(folder, **options).forward(**own_inputs(inputs), **case.options)
        worst = 0.0
        for key, value in ours.items():
            pairs = (
                zip(value, theirs[key], strict=True) if isinstance(value, list) else [(value, theirs[key])]
            )
            worst = max(worst, *(difference(a.float(), b, rows) for a, b in pairs))
        return worst

    out = _measured(error)
    start = getattr(reference.config, "decoder_start_token_id", None)
    if hasattr(reference, "lm_head") or type(reference).__name__.startswith("Whisper"):
        _add_answers(out, reference, folder, inputs, start)
    return out


def _add_answers(
    out: Measurement, reference: Any, folder: Path, inputs: dict[str, np.ndarray], start: Any
) -> None:
    """What a model of an encoder and a decoder writes behind its first input."""
    key = "input_features" if "input_features" in inputs else "input_ids"
    if start is None:
        return
    first = inputs[key][0]
    first = first[: int(inputs["attention_mask"][0].sum())] if "attention_mask" in inputs else first
    count = min(TOKENS, getattr(reference.config, "max_target_positions", TOKENS + 1) - 1)
    tokens = [start]
    for _ in range(count):
        with torch.no_grad():
            scores = reference(**{key: torch.tensor(first)[None]}, decoder_input_ids=torch.tensor([tokens]))
        tokens.append(int(scores.logits[0, -1].argmax()))
    instance = hf.load_hf(folder, max_seq_len=count + 1)
    given = Tensor(first) if key == "input_features" else first.tolist()
    cached = list(instance.generate(given, max_new_tokens=count, stop_tokens=()).tokens)
    with Tensor.no_grad():
        logits = instance.forward(**own_inputs({key: first[None]}), decoder_input_ids=[tokens[:-1]])["logits"]
    whole = logits.numpy()[0].argmax(1).tolist()
    out.tokens, out.same_cached, out.same_whole = count, _same(cached, tokens[1:]), _same(whole, tokens[1:])


def _same(found: list[int], wanted: list[int]) -> int:
    """How many tokens are the same, up to the first that is not."""
    return next((i for i, (a, b) in enumerate(zip(found, wanted)) if a != b), len(found))
