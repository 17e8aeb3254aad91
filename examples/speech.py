"""A small Whisper learns to hear: dialled numbers become digits: `python examples/speech.py`.

A telephone key is a sum of two tones. The sounds are made here, with other numbers, pauses, loudness and
noise each time; what the model reads are the energies of frequencies (`log_mel`), what it writes are tokens.
The loss goes to speech.svg. The same file runs under CPython, in Node (`npx polygrad-node`) and in a page.
"""

import argparse
import math
import random

from polygrad import Tensor, hf, nn
from polygrad.models.log_mel import SAMPLE_RATE, log_mel

KEYS = "0123456789"
ROWS, COLUMNS = (697.0, 770.0, 852.0, 941.0), (1209.0, 1336.0, 1477.0)  # hertz, as ITU-T Q.23 says
START, END = 10, 11  # tokens; a digit is its own
LENGTH = 3  # digits of a number

CONFIG = {
    "architectures": ["WhisperForConditionalGeneration"],
    "vocab_size": 12,
    "num_mel_bins": 32,
    "max_source_positions": 50,
    "max_target_positions": 16,
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
    "decoder_start_token_id": START,
    "eos_token_id": END,
    "pad_token_id": END,
}


def tones(key: str) -> tuple[float, float]:
    """The two frequencies of a key."""
    row, column = (3, 1) if key == "0" else divmod(int(key) - 1, 3)
    return ROWS[row], COLUMNS[column]


def dialled(number: str, rng: random.Random) -> list[float]:
    """The sound of a number, one second of it."""
    samples: list[float] = []
    for key in number:
        samples += [0.0] * rng.randrange(200, 900)
        low, high = (2 * math.pi * f / SAMPLE_RATE for f in tones(key))
        loudness = rng.uniform(0.2, 0.5)
        samples += [
            loudness * (math.sin(low * i) + math.sin(high * i)) for i in range(rng.randrange(1800, 2800))
        ]
    samples = samples[:SAMPLE_RATE] + [0.0] * (SAMPLE_RATE - len(samples))
    return [x + rng.gauss(0.0, 0.02) for x in samples]


def examples(count: int, rng: random.Random) -> tuple[Tensor, Tensor, list[str]]:
    """Sounds as the model reads them, the tokens that it is to write, and the numbers."""
    numbers = ["".join(rng.choices(KEYS, k=LENGTH)) for _ in range(count)]
    features = log_mel(Tensor([dialled(n, rng) for n in numbers]), CONFIG["num_mel_bins"], seconds=1)
    labels = Tensor([[*(int(c) for c in n), END] for n in numbers], dtype="int32")
    return features.realize(), labels.realize(), numbers


def main() -> None:
    parser = argparse.ArgumentParser(description="Train a small Whisper on dialled numbers.")
    parser.add_argument("--epochs", type=int, default=80)
    parser.add_argument("--sounds", type=int, default=512, help="how many there are to learn from")
    arguments = parser.parse_args()

    Tensor.manual_seed(0)
    rng = random.Random(0)
    features, labels, _ = examples(arguments.sounds, rng)
    model = hf.from_config(CONFIG)
    model.optimizer = nn.optim.AdamW(nn.state.get_parameters(model.module), lr=0.004)
    history = nn.data.History()
    batches = nn.data.batches((features, labels), 32, drop_last=True, seed=0, epochs=arguments.epochs)
    for sound, tokens in nn.data.progress(batches, "training", history=history):
        history.add(loss=model.train_step(input_features=sound, labels=tokens))
    history.save("speech.svg", title="Cross-entropy of the next digit")

    heard, _, numbers = examples(20, rng)
    answers = model.generate([heard[i] for i in range(len(numbers))], max_new_tokens=LENGTH + 1)
    written = ["".join(str(t) for t in answer.tokens) for answer in answers]
    right = sum(a == b for a, b in zip(written, numbers))
    for number, text in list(zip(numbers, written))[:4]:
        print(f"dialled {number}, heard {text}")
    print(f"{right} of {len(numbers)} numbers right, loss {history.mean('loss', of=8):.3f}")


if __name__ == "__main__":
    main()
