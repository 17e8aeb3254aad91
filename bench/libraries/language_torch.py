"""torch on a GGUF file or an encoder's folder, as users of transformers run them: numbers are unpacked to
`dtype` when the file is read, for torch multiplies by no blocks of few bits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers

from bench.libraries.inputs import numbers
from bench.libraries.language import sentences_of, tokens_of
from bench.libraries.shapes import Program

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


def make(kind: str, sizes: dict[str, Any], whole: bool) -> Program:
    """See `bench.libraries.language`. `whole`: in float32, whatever the file has."""
    if kind == "embed":
        return _checked(_embedding(sizes))
    path, count = Path(sizes["path"]), sizes["tokens"]
    dtype = torch.float32 if whole else getattr(torch, sizes["dtype"])
    model = transformers.AutoModelForCausalLM.from_pretrained(
        path.parent, gguf_file=path.name, dtype=dtype
    ).eval()
    *prompt, last = tokens_of(count)
    if kind == "prefill":
        ids = torch.tensor([[*prompt, last]])
        return _checked(lambda: model(ids, logits_to_keep=1).logits)
    cache = transformers.DynamicCache()
    with torch.inference_mode():
        model(torch.tensor([prompt]), past_key_values=cache, logits_to_keep=1)
    ids = torch.tensor([[last]])

    def step() -> torch.Tensor:
        scores = model(ids, past_key_values=cache).logits
        cache.crop(-1)
        return scores

    return _checked(step)


def _embedding(sizes: dict[str, Any]) -> Callable[[], torch.Tensor]:
    model = transformers.AutoModel.from_pretrained(sizes["path"]).eval()
    ids = torch.tensor(sentences_of(sizes["sentences"], sizes["tokens"]))
    return lambda: torch.nn.functional.normalize(model(ids).last_hidden_state.mean(1))


def _checked(compute: Callable[[], torch.Tensor]) -> Program:
    def step() -> torch.Tensor:
        with torch.inference_mode():
            return compute()

    return Program(step, lambda: numbers(step().float().numpy()), threads=torch.get_num_threads())
