"""A small model that writes sonnets is taught to write them in capitals: `python examples/lora.py`.

Trains a Llama of 0.2 million weights on half of Shakespeare's sonnets (examples/data/sonnets.txt), letter by
letter. Then its weights stay as they are, and low-rank adapters (LoRA) learn capitals from some more
sonnets. Adapters go to the folder lora_adapters in the format of the package PEFT, the loss to lora.svg. The
same file runs under CPython, in Node (`npx polygrad-node`) and in a page.
"""

import argparse
from pathlib import Path

from polygrad import Tensor, nn, tuning
from polygrad.hf import LanguageModel
from polygrad.models.fields import Fields
from polygrad.models.registry import architecture

TEXT = Path(__file__).parent / "data" / "sonnets.txt"
CONTEXT, SIZE = 64, 64
QUIET = {"batch_size": 32, "max_length": CONTEXT, "schedule": "cosine"}


def new_model(letters):
    """A Llama with random weights, for as many letters."""
    config = Fields(
        {
            "architectures": ["LlamaForCausalLM"],
            "vocab_size": letters,
            "hidden_size": SIZE,
            "intermediate_size": 3 * SIZE,
            "num_hidden_layers": 3,
            "num_attention_heads": 4,
            "max_position_embeddings": 256,
        }
    )
    kind = architecture("LlamaForCausalLM")
    return LanguageModel(kind.build(config), kind, config, files={})


def lines_of(text, number):
    """The text in pieces of CONTEXT letters, as numbers, of which all count in the loss."""
    codes = [number[letter] for letter in text]
    pieces = [tuple(codes[i : i + CONTEXT]) for i in range(0, len(codes) - 1, CONTEXT)]
    return [tuning.Example(piece, (-100, *piece[1:])) for piece in pieces]


def main():
    parser = argparse.ArgumentParser(description="Fine-tune a small language model with adapters.")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--letters", type=int, default=120, help="how many to write")
    options = parser.parse_args()

    text = TEXT.read_text(encoding="utf-8")
    alphabet = sorted({*text, *text.upper()})
    number = {letter: i for i, letter in enumerate(alphabet)}
    start, capitals = text[: len(text) * 3 // 4], text[len(text) * 3 // 4 :].upper()

    Tensor.manual_seed(0)
    model = new_model(len(alphabet))
    first = tuning.train(
        model, lines_of(start, number), epochs=options.epochs, lr=0.004, label="sonnets", **QUIET
    )

    def written(prompt):
        tokens = [number[letter] for letter in prompt]
        return prompt + "".join(
            alphabet[t]
            for t in model.generate(tokens, max_new_tokens=options.letters, temperature=0.5, seed=1).tokens
        )

    print(f"Before:\n\n{written('Shall I compare ')}\n")
    adapters = tuning.add_lora(model, rank=8, alpha=16, targets="all-linear")
    second = tuning.train(
        adapters,
        lines_of(capitals, number),
        epochs=max(options.epochs // 2, 1),
        lr=0.01,
        validation=0.1,
        label="capitals",
        **QUIET,
    )
    print(f"With adapters:\n\n{written('SHALL I COMPARE ')}\n")

    tuning.save_adapters(adapters, "lora_adapters")
    history = nn.data.History()
    for loss in (*first.losses, *second.losses):
        history.add(loss=loss)
    history.save("lora.svg", title="Sonnets, then sonnets in capitals")
    count = sum(p.numel() for p in adapters.parameters)
    share = count / sum(t.numel() for t in model.weights().values())
    print(f"held-out loss in capitals {second.validation[0][1]:.3f}, then {second.validation[-1][1]:.3f}")
    print(f"{share:.0%} of the weights were trained")


if __name__ == "__main__":
    main()
