"""A small model learns to prompt whoever recites sonnets, and is talked with: `python examples/chat.py`.

Trains a Llama of 0.3 million weights on conversations made of Shakespeare's sonnets
(examples/data/sonnets.txt): somebody says a line, perhaps with a wrong word, and the model says the next one;
after "And then?" the one behind that. Tokens are words. The model goes to the folder chat_model with a
tokenizer and a chat template, so `polygrad chat chat_model` talks with it, and `polygrad serve chat_model`
answers programs that know OpenAI's interface. The loss goes to chat.svg. The same file runs under CPython, in
Node (`npx polygrad-node`) and in a page.
"""

import argparse
import itertools
import json
import random
from pathlib import Path

from polygrad import Tensor, hf, tuning

TEXT = Path(__file__).parent / "data" / "sonnets.txt"
FOLDER = "chat_model"
MORE = "And then?"
UNKNOWN, END = "<|unknown|>", "<|end|>"
SPECIAL = (UNKNOWN, END, "<|user|>", "<|assistant|>")
TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|> {{ message.content }} <|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|> {% endif %}"
)


def tokenizer_files(words):
    """The files of a tokenizer whose tokens are these words, by name."""
    vocabulary = {word: number for number, word in enumerate([*SPECIAL, *words])}
    kinds = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [{"id": vocabulary[token], "content": token, **kinds} for token in SPECIAL],
        "pre_tokenizer": {"type": "WhitespaceSplit"},
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": UNKNOWN},
    }
    settings = {"eos_token": END, "unk_token": UNKNOWN, "chat_template": TEMPLATE}
    return {
        "tokenizer.json": json.dumps(tokenizer).encode(),
        "tokenizer_config.json": json.dumps(settings).encode(),
    }


def new_model(words):
    """A Llama with random weights."""
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": len(SPECIAL) + len(words),
        "hidden_size": 96,
        "intermediate_size": 192,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 256,
        "tie_word_embeddings": True,
        "eos_token_id": SPECIAL.index(END),
    }
    return hf.from_config(config, tokenizer_files(words))


def misremembered(line, rng):
    """A line with a word that nobody knows in it."""
    words = line.split()
    words[rng.randrange(len(words))] = UNKNOWN
    return " ".join(words)


def conversation(poem, first, turns, said):
    """Messages: somebody says line `first` of a poem as `said`; the next `turns` lines are the answers."""
    messages = []
    for turn in range(turns):
        messages.append({"role": "user", "content": MORE if turn else said})
        messages.append({"role": "assistant", "content": poem[first + turn + 1]})
    return messages


def conversations(poems, rng):
    """Conversations of up to four turns that begin at each line, once with a wrong word and once without."""
    records = []
    for poem in poems:
        for first, line in enumerate(poem[:-1]):
            for said in (line, misremembered(line, rng)):
                turns = min(rng.randint(1, 4), len(poem) - 1 - first)
                records.append({"messages": conversation(poem, first, turns, said)})
    return records


def right_answers(model, poems, rng):
    """How many next lines the model knows, of lines with a wrong word."""
    asked = [(misremembered(a, rng), b) for poem in poems for a, b in itertools.pairwise(poem)]
    answers = model.generate([[{"role": "user", "content": line}] for line, _ in asked], max_new_tokens=16)
    return sum(answer.text == expected for answer, (_, expected) in zip(answers, asked)), len(asked)


def main():
    parser = argparse.ArgumentParser(description="Train a small model to chat, and chat with it.")
    parser.add_argument("--epochs", type=int, default=25)
    parser.add_argument("--sonnets", type=int, default=8, help="how many the model learns, from the first on")
    options = parser.parse_args()

    text = TEXT.read_text(encoding="utf-8")
    poems = [poem.splitlines() for poem in text.strip().split("\n\n")][: options.sonnets]
    words = sorted({word for poem in poems for line in poem for word in line.split()} | {*MORE.split()})
    rng = random.Random(0)
    Tensor.manual_seed(0)
    learner = new_model(words)
    report = tuning.train(
        learner,
        conversations(poems, rng),
        epochs=options.epochs,
        batch_size=8,
        max_length=128,
        lr=0.004,
        warmup=20,
        schedule="cosine",
    )
    Path("chat.svg").write_text(report.svg(), encoding="utf-8")
    learner.save(FOLDER)

    model = hf.load_hf(FOLDER, max_batch=16)
    messages = []
    for said in (poems[-1][0], MORE, MORE):
        messages.append({"role": "user", "content": said})
        answer = model.generate(messages, max_new_tokens=16).text
        messages.append({"role": "assistant", "content": answer})
        print(f"you: {said}\nmodel: {answer}")
    right, count = right_answers(model, poems, rng)
    print(f"{right} of {count} lines right after one with a wrong word, loss {report.losses[-1]:.3f}")


if __name__ == "__main__":
    main()
