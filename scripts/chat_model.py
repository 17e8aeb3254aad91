"""Trains the small model of the playground's chat, examples/data/chat, in minutes on two cores.

    python scripts/chat_model.py [FOLDER] [--dialogues N] [--steps N]

A Llama of a million weights with a tokenizer of its own learns the dialogues of chat_dialogues.py. The folder
is one that HuggingFace's transformers reads, too. Needs the packages tokenizers and jinja2.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from chat_dialogues import dialogues, questions
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from polygrad import Tensor, hf, nn, tuning

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "data" / "chat"
DIALOGUES, SEED, HELD_OUT_SEED = 30_000, 0, 1
VOCABULARY, LENGTH = 768, 128
END = "<|end|>"
SPECIAL = (END, "<|user|>", "<|assistant|>")
TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def tokenizer_files(texts: Iterable[str]) -> dict[str, bytes]:
    """A byte-level BPE tokenizer made for `texts`, in which digits are tokens of their own."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=VOCABULARY,
            special_tokens=list(SPECIAL),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "eos_token": END,
        "pad_token": END,
        "chat_template": TEMPLATE,
    }
    return {
        "tokenizer.json": tokenizer.to_str().encode(),
        "tokenizer_config.json": (json.dumps(settings, indent=2) + "\n").encode(),
        "generation_config.json": (json.dumps({"eos_token_id": SPECIAL.index(END)}) + "\n").encode(),
    }


def new_model(files: dict[str, bytes]) -> hf.LanguageModel:
    """A Llama with random weights."""
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": len(json.loads(files["tokenizer.json"])["model"]["vocab"]),
        "hidden_size": 128,
        "intermediate_size": 352,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": True,
        "eos_token_id": SPECIAL.index(END),
        "torch_dtype": "float16",
    }
    model = hf.from_config(config, files)
    assert isinstance(model, hf.LanguageModel)
    return model


def trained(count: int, steps: int | None = None) -> tuple[hf.LanguageModel, tuning.Report]:
    """A model that has learned so many dialogues, in float16; it stops after `steps`."""
    talks = list(dialogues(count, SEED))
    files = tokenizer_files(message["content"] for talk in talks for message in talk)
    Tensor.manual_seed(0)
    model = new_model(files)
    done = 0

    def should_stop() -> bool:
        nonlocal done
        done += 1
        return done == steps

    report = tuning.train(
        model,
        [{"messages": talk} for talk in talks],
        batch_size=16,
        max_length=LENGTH,
        lr=0.003,
        warmup=100,
        schedule="cosine",
        weight_decay=0.05,
        should_stop=should_stop,
    )
    nn.state.model_to(model.module, None, "float16")
    return model, report


def accuracy(folder: Path, count: int = 400) -> float:
    """The part of questions that are answered right; their wordings are new, their facts are not."""
    model: Any = hf.load_hf(folder, max_batch=16, dtype="float32")
    asked, answers = zip(*questions(count, HELD_OUT_SEED))
    prompts = [[{"role": "user", "content": question}] for question in asked]
    given = model.generate(prompts, max_new_tokens=48, temperature=0)
    return sum(a.text == b for a, b in zip(given, answers)) / count


def main() -> None:
    parser = argparse.ArgumentParser(description="Train the small model of the playground's chat.")
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    parser.add_argument("--dialogues", type=int, default=DIALOGUES)
    parser.add_argument("--steps", type=int, help="stop after so many")
    options = parser.parse_args()
    model, report = trained(options.dialogues, options.steps)
    model.save(options.folder)
    size = sum(file.stat().st_size for file in options.folder.iterdir())
    print(f"{options.folder}: {size} bytes, {report.steps} steps of {report.of} in {report.seconds:.0f} s")
    print(f"loss {report.losses[-1]:.3f}, {accuracy(options.folder):.1%} of new questions answered right")


if __name__ == "__main__":
    main()
