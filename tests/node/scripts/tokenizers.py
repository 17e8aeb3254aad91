"""What polygrad.hf makes of the tokenizers, strings and conversations in the file that is named, as JSON."""

from __future__ import annotations

import json
import sys

from polygrad.errors import ModelError
from polygrad.hf import Tokenizer
from polygrad.hf.chat import render_chat

with open(sys.argv[1], encoding="utf-8") as file:
    given = json.load(file)
out: dict[str, object] = {"platform": sys.platform}
for kind, (files, texts) in given["tokenizers"].items():
    tokenizer = Tokenizer({name: text.encode() for name, text in files.items()})
    ids = [tokenizer.encode(text) for text in texts]
    stream = tokenizer.stream()
    streamed = "".join(map(stream.feed, ids[-1])) + stream.finish()
    out[kind] = [ids, [tokenizer.decode(row) for row in ids], streamed, tokenizer.encode_pair(*texts[-2:])]
for family, (template, messages) in given["templates"].items():
    out[f"chat {family}"] = render_chat(template, messages, special={"bos_token": "<s>", "eos_token": "</s>"})
try:
    render_chat("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", messages)
except ModelError as e:
    out["refused"] = str(e)
try:
    data = json.loads(given["tokenizers"]["gpt2"][0]["tokenizer.json"])
    Tokenizer({"tokenizer.json": json.dumps({**data, "normalizer": {"type": "Nmt"}}).encode()})
    out["unsupported"] = "accepted"
except ModelError as e:
    out["unsupported"] = str(e)
print(json.dumps(out))
