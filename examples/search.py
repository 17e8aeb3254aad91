"""A small encoder learns to find lines that were noted down in haste: `python examples/search.py`.

Whoever writes fast leaves out vowels and spaces, and hits wrong keys: "shllcmprtht smmr'sdy". Trains a BERT
of 70,000 weights that reads letters: a line of Shakespeare's sonnets (examples/data/sonnets.txt) and the
same line in haste get like vectors, other lines do not (InfoNCE, van den Oord et al., 2018). Then `embed`
makes an index of all lines, and notes of lines that the model has not seen are looked up in it, by products
of vectors. It is compared with the lines that have most words, or most triples of letters, in common. The
model goes to the folder search_model, which sentence-transformers reads, too, the loss to search.svg. The
same file runs under CPython, in Node (`npx polygrad-node`) and in a page.
"""

import argparse
import json
import random
from pathlib import Path

from polygrad import Tensor, compile_step, hf, nn

TEXT = Path(__file__).parent / "data" / "sonnets.txt"
FOLDER = "search_model"
LENGTH, SIZE, BATCH = 56, 64, 48
ALPHABET = "abcdefghijklmnopqrstuvwxyz "
PAD, UNKNOWN, START = "[PAD]", "[UNK]", "[CLS]"
SPECIAL = (PAD, UNKNOWN, START)


def model_files(letters):
    """The files of a tokenizer whose tokens are letters, and of a mean of vectors, by name."""
    vocabulary = {token: number for number, token in enumerate([*SPECIAL, *letters])}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokenizer = {
        "version": "1.0",
        "added_tokens": [{"id": vocabulary[token], "content": token, **flags} for token in SPECIAL],
        "normalizer": {"type": "Lowercase"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": START, "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
            ],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {START: {"id": START, "ids": [vocabulary[START]], "tokens": [START]}},
        },
        "model": {"type": "BPE", "vocab": vocabulary, "merges": [], "unk_token": UNKNOWN},
    }
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    modules = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(kinds)
    ]
    files = {
        "tokenizer.json": tokenizer,
        "tokenizer_config.json": {"pad_token": PAD, "unk_token": UNKNOWN, "cls_token": START},
        "modules.json": modules,
        "1_Pooling/config.json": {"word_embedding_dimension": SIZE, "pooling_mode_mean_tokens": True},
    }
    return {name: json.dumps(data).encode() for name, data in files.items()}


def new_model(letters):
    """A BERT with random weights."""
    config = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "vocab_size": len(SPECIAL) + len(letters),
        "hidden_size": SIZE,
        "intermediate_size": 2 * SIZE,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": LENGTH,
        "hidden_dropout_prob": 0.0,  # the model is too small to learn more than it should
        "attention_probs_dropout_prob": 0.0,
        "pad_token_id": SPECIAL.index(PAD),
    }
    return hf.from_config(config, model_files(letters))


def in_haste(line, rng):
    """A line without vowels and most spaces, and every eighth letter or so wrong, missing or additional."""
    letters = []
    for letter in line.lower():
        if letter in "aeiou" or (letter == " " and rng.random() < 0.7):
            continue
        change = rng.random()
        if change < 0.95:
            letters.append(rng.choice(ALPHABET) if change < 0.05 else letter)
        if 0.05 < change < 0.08:
            letters.append(rng.choice(ALPHABET))
    return "".join(letters)


def rows(model, texts):
    """Tokens of texts and their mask, (n, LENGTH) each."""
    batch = model.tokenizer.encode_batch(texts, max_length=LENGTH)
    filled = [row + [0] * (LENGTH - len(row)) for row in batch.ids]
    mask = [row + [0] * (LENGTH - len(row)) for row in batch.attention_mask]
    return Tensor(filled, dtype="int32"), Tensor(mask, dtype="int32")


def vectors(module, ids, mask):
    """Normalised means of the vectors of tokens, (n, SIZE)."""
    states = module.forward(input_ids=ids, attention_mask=mask)["last_hidden_state"]
    counted = mask.unsqueeze(2)
    mean = (states * counted).sum(1) / counted.sum(1)
    return mean / mean.square().sum(1, keepdim=True).sqrt()


def loss_of(module, ids, mask, note_ids, note_mask):
    """How badly each note tells its own line from the others of the batch."""
    likeness = vectors(module, note_ids, note_mask) @ vectors(module, ids, mask).transpose(0, 1)
    return (likeness * 20).cross_entropy(Tensor.arange(ids.shape[0], dtype="int32"))


def words(text):
    return {*text.split()}


def triples(text):
    return {text[i : i + 3] for i in range(len(text) - 2)}


def most_in_common(parts, lines, queries):
    """The line that has most parts in common with each query, of all parts that either has."""
    sets = [(line, parts(line.lower())) for line in lines]
    return [max(sets, key=lambda one: len(one[1] & query) / len(one[1] | query))[0]
            for query in map(parts, queries)]  # fmt: skip


def share(found, wanted):
    """The part of the lines that were found."""
    return sum(a == b for a, b in zip(found, wanted)) / len(wanted)


def main():
    parser = argparse.ArgumentParser(description="Train a small encoder, and search with it.")
    parser.add_argument("--steps", type=int, default=250)
    steps = parser.parse_args().steps

    lines = [line for line in TEXT.read_text(encoding="utf-8").splitlines() if line]
    known, new = lines[: len(lines) * 3 // 4], lines[len(lines) * 3 // 4 :]
    letters = sorted({*"".join(lines).lower()})
    rng = random.Random(0)
    Tensor.manual_seed(0)
    model = new_model(letters)
    optimizer = nn.optim.AdamW(nn.state.get_parameters(model.module), lr=0.002)
    schedule = nn.optim.OneCycleLR(optimizer, 0.004, total_steps=steps)
    history, step = nn.data.History(), None
    for _ in nn.data.progress(range(steps), "training", history=history):
        batch = rng.sample(known, BATCH)
        given = (*rows(model, batch), *rows(model, [in_haste(line, rng) for line in batch]))
        step = step or compile_step(loss_of, model.module, optimizer, *given)
        history.add(loss=step.run(*given))
        schedule.step()
    history.save("search.svg", title="Cross-entropy of lines")
    model.save(FOLDER)

    reader = hf.load_hf(FOLDER)
    index = reader.embed(lines)
    notes = [in_haste(line, rng) for line in new]
    likeness = reader.embed(notes) @ index.transpose(0, 1)
    found = [lines[i] for i in likeness.argmax(1).tolist()]
    for note, line in list(zip(notes, found))[:3]:
        print(f"{note}\n    {line}")
    print(f"{len(notes)} notes of new lines, looked up among {len(lines)}: {share(found, new):.1%} found")
    for name, parts in (("words", words), ("triples of letters", triples)):
        print(f"by {name}: {share(most_in_common(parts, lines, notes), new):.1%}")


if __name__ == "__main__":
    main()
