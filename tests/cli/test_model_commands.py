"""`polygrad generate`, `chat`, `embed`, `classify` and `serve`: what they write, and what they refuse."""

from __future__ import annotations

import io
import json
import os
import pty
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tiny_text_models

from polygrad import Device, hf
from polygrad.cli.main import main


@pytest.fixture(autouse=True)
def same_device(monkeypatch):
    monkeypatch.setattr(Device, "DEFAULT", Device.DEFAULT)


def status(*arguments: str) -> int:
    return main("1.2.3", arguments)


def model(**options) -> hf.LanguageModel:
    return hf.load_hf(tiny_text_models.talker(), **options)


# --- generate


def test_generate_writes_the_answer_and_says_how_fast_it_was(capsys):
    arguments = ["--max-new-tokens", "8", "--temperature", "0.9", "--seed", "3"]
    assert status("generate", tiny_text_models.talker(), "Shall I", *arguments) == 0
    out, err = capsys.readouterr()
    assert out == model().generate("Shall I", max_new_tokens=8, temperature=0.9, seed=3).text + "\n"
    assert err.startswith("[length: 8 tokens, the first after ") and err.endswith(" tokens/s]\n")


def test_generate_gives_one_object_or_one_a_line(capsys, monkeypatch):
    expected = model().generate("Shall I", max_new_tokens=8)
    assert status("generate", tiny_text_models.talker(), "Shall I", "--max-new-tokens", "8", "--json") == 0
    whole = json.loads(capsys.readouterr().out)
    assert (whole["text"], tuple(whole["tokens"])) == (expected.text, expected.tokens)
    assert (whole["finish_reason"], whole["answer_tokens"]) == ("length", 8)
    assert whole["prompt_tokens"] == expected.prompt_tokens and whole["first_token_seconds"] > 0
    monkeypatch.setattr(sys, "stdin", io.StringIO("Shall I"))
    options = ["--max-new-tokens", "8", "--json", "--stream"]
    assert status("generate", tiny_text_models.talker(), "-", *options) == 0
    *pieces, end = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert "".join(piece["text"] for piece in pieces) == expected.text
    assert [t for piece in pieces for t in piece["tokens"]] == list(expected.tokens)
    assert "text" not in end and end["answer_tokens"] == 8


def test_generate_follows_a_grammar(capsys):
    pytest.importorskip("llguidance", reason="grammars need it")
    assert status("generate", tiny_text_models.talker(), "x", "--regex", "(red|blue)!") == 0
    assert capsys.readouterr().out in ("red!\n", "blue!\n")
    assert status("generate", tiny_text_models.talker(), "x", "--schema", '{"enum": [12]}', "--json") == 0
    assert json.loads(json.loads(capsys.readouterr().out)["text"]) == 12


def test_generate_stops_at_strings_and_takes_dtypes_and_devices(capsys):
    text = model().generate("Shall I", max_new_tokens=12).text
    arguments = ["generate", tiny_text_models.talker(), "Shall I", "--max-new-tokens", "12"]
    assert status(*arguments, "--stop", text[5:7]) == 0
    assert capsys.readouterr().out == text[: text.index(text[5:7])] + "\n"
    assert status(*arguments, "--device", "wasm", "--max-seq-len", "64") == 0
    assert capsys.readouterr().out == text + "\n"
    assert Device.DEFAULT == "WASM"
    assert status(*arguments, "--dtype", "bfloat16", "--json") == 0
    assert json.loads(capsys.readouterr().out)["answer_tokens"] > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["generate", "{talker}", "x", "--temperature", "-1"], "temperature: expected at least 0"),
        (["generate", "{talker}", "x" * 600], "600 tokens, with room for 511"),
        (["generate", "{talker}", "x", "--stream"], "--stream: expected --json"),
        (["generate", "{talker}", "x", "--device", "nothing"], "NOTHING"),
        (["generate", "{talker}", "x", "--dtype", "int8"], "dtype: expected a float"),
        (["generate", "{talker}", "x", "--max-seq-len", "1000"], "max_seq_len: expected 0 to 512"),
        (["generate", "{embedder}", "x"], "BertModel is no model that writes text"),
        (["generate", "/no/such/folder", "x"], "/no/such/folder"),
        (["embed", "{talker}", "x"], "is no model that embeds texts"),
        (["embed", "{embedder}"], "texts: expected at least one"),
        (["embed", "{embedder}", "--file", "/no/such/file"], "--file: /no/such/file"),
        (["classify", "{embedder}", "x"], "is no model that gives labels"),
        (["serve", "{talker}", "--max-batch", "0"], "--max-batch: expected at least 1"),
        (["serve", "{talker}", "--port", "70000"], "port: expected 0 to 65535"),
        (["serve", "{talker}", "--time", "-1"], "seconds: expected a finite number from 0 on"),
        (["serve", "{classifier}"], "expected a model that writes text or embeds it"),
    ],
)
def test_what_cannot_be_done_is_said(arguments, words, capsys):
    folders = {
        "talker": tiny_text_models.talker(),
        "embedder": tiny_text_models.embedder()[0],
        "classifier": tiny_text_models.classifier()[0],
    }
    assert status(*(a.format(**folders) for a in arguments)) == 1
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("polygrad: ") and words in err and "Traceback" not in err


@pytest.mark.parametrize("command", ["generate", "chat", "embed", "classify", "serve"])
def test_help_has_examples(command, capsys):
    with pytest.raises(SystemExit) as end:
        status(command, "--help")
    text = capsys.readouterr().out
    assert end.value.code == 0
    assert f"polygrad {command} " in text and "--max-seq-len" in text and "--quantize" in text


# --- chat


def test_chat_keeps_the_conversation_until_it_is_reset(capsys, monkeypatch):
    lines = ["Hello", "", "What did I say?", "/reset", "/what", "Hello", "/exit", "never read"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(lines) + "\n"))
    options = ["--max-new-tokens", "6", "--system", "Be kind.", "--json"]
    assert status("chat", tiny_text_models.talker(), *options) == 0
    out, err = capsys.readouterr()
    first, second, third = [json.loads(line) for line in out.splitlines()]
    messages = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hello"}]
    assert first["text"] == third["text"] == model().generate(messages, max_new_tokens=6).text
    messages += [{"role": "assistant", "content": first["text"]}, {"role": "user", "content": lines[2]}]
    assert second["text"] == model().generate(messages, max_new_tokens=6).text
    assert first["tokens"] == 6 and first["finish_reason"] == "length"
    assert "there is no /what" in err and err.count("[length: 6 tokens") == 3


def test_ctrl_c_ends_an_answer_and_not_the_program():
    """At a terminal of its own, as a person would."""
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "polygrad", "chat", tiny_text_models.talker(), "--max-new-tokens"]
    process = subprocess.Popen(
        [*command, "470"], stdin=child, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    os.close(child)
    assert process.stdout is not None and process.stderr is not None
    try:
        os.write(parent, b"Hello\n")
        assert process.stdout.read(8)  # "> ", and the beginning of the answer
        process.send_signal(signal.SIGINT)
        said = b""
        while b"tokens" not in said:
            said += process.stderr.readline()
        assert b"cancelled" in said or b"length" in said or b"stop" in said
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)  # while it waits for a line
        os.write(parent, b"Hi\n")
        while said.count(b"tokens") < 2:
            said += process.stderr.readline()
        os.write(parent, b"/exit\n")
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
        os.close(parent)


# --- embed, classify


def test_embed_takes_arguments_and_lines_of_a_file(capsys, tmp_path):
    folder = tiny_text_models.embedder()[0]
    (tmp_path / "texts.txt").write_text("a dog ran\n\nthe mat\n")
    expected = hf.load_hf(folder).embed(["the cat", "a dog ran", "the mat"]).numpy()
    arguments = ["embed", folder, "the cat", "--file", str(tmp_path / "texts.txt")]
    assert status(*arguments, "--json") == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert found["texts"] == ["the cat", "a dog ran", "the mat"]
    assert abs(np.array(found["embeddings"]) - expected).max() < 1e-6
    assert err.startswith("[3 texts, 32 numbers each")
    assert status(*arguments, "--output", str(tmp_path / "v.npy")) == 0
    assert (np.load(tmp_path / "v.npy") == expected).all()
    capsys.readouterr()
    assert status(*arguments) == 0
    rows = [[float(x) for x in line.split()] for line in capsys.readouterr().out.splitlines()]
    assert abs(np.array(rows) - expected).max() < 1e-5


def test_classify_gives_the_likeliest_label_or_all(capsys, monkeypatch):
    folder = tiny_text_models.classifier()[0]
    expected = hf.load_hf(folder).classify(["the cat", "a dog"])
    monkeypatch.setattr(sys, "stdin", io.StringIO("a dog\n"))
    assert status("classify", folder, "the cat", "--file", "-", "--json") == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [f["probabilities"] for f in found] == expected
    assert [f["label"] for f in found] == [max(e, key=e.__getitem__) for e in expected]
    assert status("classify", folder, "the cat") == 0
    label, probability, text = capsys.readouterr().out.rstrip("\n").split("\t")
    assert (label, text) == (found[0]["label"], "the cat")
    assert abs(float(probability) - expected[0][label]) < 1e-4


def test_serve_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert status("serve", tiny_text_models.talker()) == 1
    assert 'pip install "polygrad[serve]"' in capsys.readouterr().err
