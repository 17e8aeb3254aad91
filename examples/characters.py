"""A transformer learns to write sonnets, letter by letter: `python examples/characters.py`.

Trains on half of Shakespeare's sonnets (examples/data/sonnets.txt), writes its loss to characters.svg, and
then writes itself. Writing keeps the keys and values of the last CONTEXT letters, so that each letter costs
one row of attention: one captured function, whose place in the cache is a Variable. The same file runs under
CPython, in Node (`npx polygrad-node`) and in a page.
"""

import argparse
import itertools
from pathlib import Path

from polygrad import Tensor, TinyJit, Variable, compile_step, nn

TEXT = Path(__file__).parent / "data" / "sonnets.txt"
CONTEXT, SIZE, HEADS, LAYERS, BATCH = 64, 64, 4, 2, 32


def rotated(x, positions):
    """Rotary position embedding (Su et al., 2021): only the distance between two letters counts.

    x (n, heads, length, size), positions (length,): pairs of x turn by angles in proportion to the position.
    """
    half = x.shape[-1] // 2
    angles = positions.float().unsqueeze(1) * 1000.0 ** (Tensor.arange(half) / -half)
    cos, sin, a, b = angles.cos(), angles.sin(), x[..., :half], x[..., half:]
    return (a * cos - b * sin).cat(a * sin + b * cos, dim=-1)


class Block:
    """Attention and two linear layers, each behind a normalisation and with its input added."""

    def __init__(self):
        self.norm1, self.norm2 = nn.RMSNorm(SIZE), nn.RMSNorm(SIZE)
        self.qkv, self.out = nn.Linear(SIZE, 3 * SIZE, bias=False), nn.Linear(SIZE, SIZE, bias=False)
        self.up, self.down = nn.Linear(SIZE, 4 * SIZE), nn.Linear(4 * SIZE, SIZE)

    def __call__(self, x, positions, cache=None, slot=None):
        """x (n, length, SIZE). With a cache (2, n, HEADS, CONTEXT, size): of one letter, for `slot`."""
        q, k, v = self.qkv(self.norm1(x)).rearrange("n t (three h s) -> three n h t s", three=3, h=HEADS)
        q, k = rotated(q, positions), rotated(k, positions)
        if cache is None:
            attended = q.scaled_dot_product_attention(k, v, is_causal=True)
        else:
            cache[:, :, :, slot : slot + 1].assign(Tensor.stack(k, v))
            seen = Tensor.arange(CONTEXT) <= positions  # all of them, once the cache is full
            attended = q.scaled_dot_product_attention(cache[0], cache[1], attn_mask=seen)
        x = x + self.out(attended.rearrange("n h t s -> n t (h s)"))
        return x + self.down(self.up(self.norm2(x)).gelu())


class Writer:
    """Letters (n, length) to scores of what follows each, (n, length, letters)."""

    def __init__(self, letters):
        self.embedding, self.norm = nn.Embedding(letters, SIZE), nn.RMSNorm(SIZE)
        self.blocks = [Block() for _ in range(LAYERS)]
        self.out = nn.Linear(SIZE, letters)

    def __call__(self, codes):
        x, positions = self.embedding(codes), Tensor.arange(codes.shape[1])
        for block in self.blocks:
            x = block(x, positions)
        return self.out(self.norm(x))

    def next(self, code, position, caches, slot):
        """Scores (letters,) of what follows the letter `code` (1, 1) at `position` (1,)."""
        x = self.embedding(code)
        for block, cache in zip(self.blocks, caches):
            x = block(x, position, cache, slot)
        return self.out(self.norm(x)).flatten()


def write(model, alphabet, prompt, length, temperature=0.7):
    """Prompt and `length` letters more, as the model draws them one by one."""
    caches = [Tensor.zeros(2, 1, HEADS, CONTEXT, SIZE // HEADS).contiguous().realize() for _ in model.blocks]
    slot = Variable("slot", 0, CONTEXT - 1)

    @TinyJit
    def draw(code, position, slot):
        scores = model.next(code, position, caches, slot)
        return (scores / temperature).softmax().multinomial()

    codes = [alphabet.index(letter) for letter in prompt]
    for i in range(len(prompt) + length - 1):
        drawn = draw(Tensor([[codes[i]]]), Tensor([i]), slot.bind(i % CONTEXT))
        if i + 1 == len(codes):
            codes.append(int(drawn.item()))
    return "".join(alphabet[code] for code in codes)


def main():
    parser = argparse.ArgumentParser(description="Train a transformer on sonnets, and have it write.")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--letters", type=int, default=400, help="how many it writes")
    arguments = parser.parse_args()

    Tensor.manual_seed(0)
    text = TEXT.read_text(encoding="utf-8")
    alphabet = sorted(set(text))
    codes = Tensor([alphabet.index(letter) for letter in text])
    held_out = len(text) // 10
    train, test = (part.unfold(0, CONTEXT + 1, 8) for part in (codes[:-held_out], codes[-held_out:]))

    def loss_of(model, windows):
        return model(windows[:, :-1]).sparse_categorical_crossentropy(windows[:, 1:])

    model = Writer(len(alphabet))
    optimizer = nn.optim.AdamW(nn.state.get_parameters(model), lr=0.003, weight_decay=0.05)
    schedule = nn.optim.CosineAnnealingLR(optimizer, arguments.steps)
    epochs = -(-arguments.steps // (train.shape[0] // BATCH))
    batches = nn.data.batches(train, BATCH, drop_last=True, seed=0, epochs=epochs)
    history = nn.data.History()
    step = None
    some = itertools.islice(batches, arguments.steps)
    for (windows,) in nn.data.progress(some, "training", arguments.steps, history):
        step = step or compile_step(loss_of, model, optimizer, windows)
        history.add(loss=step.run(windows))
        schedule.step()
    history.save("characters.svg", title="Cross-entropy of the next letter")

    loss = loss_of(model, test[:64]).item()
    print(f"held-out loss {loss:.3f}, training loss {history.mean('loss', of=50):.3f}", end="\n\n")
    print(write(model, alphabet, "Shall I compare ", arguments.letters))


if __name__ == "__main__":
    main()
