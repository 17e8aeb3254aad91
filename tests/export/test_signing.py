"""Signatures of exported files. minisign is the judge, where it is installed."""

from __future__ import annotations

import base64
import importlib
import json
import shutil
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pgrd.corpus import FOLDER
from pgrd.signatures import FILE, KEY, SIGNED, signatures, text

from polygrad import export
from polygrad.cli.main import main
from polygrad.errors import ArgumentError, DeviceError, ProgramError, SignatureError
from polygrad.export.minisign import read_public_key, read_signature, verify
from polygrad.export.signing import check_signature
from polygrad.runtime.bundle import Bundle
from polygrad.runtime.program import read_program

CORPUS: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
needs_minisign = pytest.mark.skipif(
    shutil.which("minisign") is None, reason="there is no minisign (Debian: scripts/toolchains.sh)"
)
# Of minisign's author: a key and signatures of the bytes `test`, from the documentation of minisign-verify.
AUTHOR = b"RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"
OLD_SIGNATURE = b"""untrusted comment: signature from minisign secret key
RWQf6LRCGA9i59SLOFxz6NxvASXDJeRtuZykwQepbDEGt87ig1BNpWaVWuNrm73YiIiJbq71Wi+dP9eKL8OC351vwIasSSbXxwA=
trusted comment: timestamp:1555779966\tfile:test
QtKMXWyYcwdpZAlPF7tE2ENJkRd1ujvKjlj1m9RtHTBnZPa5WKU5uWRs5GoP5M/VqE81QFuMKI5k/SfNQUaOAA==
"""
SIGNATURE = b"""untrusted comment: signature from minisign secret key
RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=
trusted comment: timestamp:1556193335\tfile:test
y/rUw2y8/hOUYjZU71eHp/Wo1KZ40fGy2VJEDl34XMJM+TX48Ss/17u3IvIfbVR1FkZZSNCisQbuQY+bHwhEBg==
"""


def minisign(*arguments: object, typed: str = "") -> str:
    command = ["minisign", *map(str, arguments)]
    done = subprocess.run(command, input=typed, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """An exported step, and keys beside it: signing.key, signing.pub."""
    shutil.copy(FOLDER / SIGNED, tmp_path / "model.pgrd")
    export.generate_key(tmp_path / "signing.key")
    return tmp_path / "model.pgrd"


# --- the format


def test_a_signature_of_minisign_s_author() -> None:
    key = read_public_key(AUTHOR)
    assert key.name == "E7620F1842B4E81F"
    verify(memoryview(b"test"), read_signature(SIGNATURE), key)
    with pytest.raises(SignatureError, match="the file is not what key E7620F1842B4E81F signed"):
        verify(memoryview(b"Test"), read_signature(SIGNATURE), key)
    with pytest.raises(SignatureError, match=r"over a BLAKE2b digest \(ED\), got algorithm b'Ed'"):
        read_signature(OLD_SIGNATURE)


def test_the_corpus_is_what_its_generator_writes() -> None:
    advice = "run PYTHONPATH=.:tests python tests/pgrd/signatures.py and review it"
    assert FILE.read_text(encoding="utf-8") == text(signatures()), advice


@pytest.mark.parametrize("number", range(len(CORPUS["cases"])))
def test_the_verdict_on_each_signature(number: int) -> None:
    data = memoryview((FOLDER / CORPUS["file"]).read_bytes())
    case = CORPUS["cases"][number]
    signature = base64.b64decode(case["signature"])
    if case["verdict"] in ("good", "whole"):
        check_signature(b"", data, CORPUS["public_key"], signature)
    else:
        with pytest.raises(SignatureError):
            check_signature(b"", data, CORPUS["public_key"], signature)


@needs_minisign
def test_minisign_verifies_what_is_signed_here(model: Path) -> None:
    export.sign(model, model.with_name("signing.key"), comment="release 1.2")
    said = minisign("-Vm", model, "-p", model.with_name("signing.pub"))
    assert "Signature and comment signature verified" in said and "\trelease 1.2\thead:5047" in said
    model.write_bytes(model.read_bytes() + b" ")
    with pytest.raises(AssertionError, match="verification failed"):
        minisign("-Vm", model, "-p", model.with_name("signing.pub"))


@needs_minisign
def test_keys_and_signatures_of_minisign(model: Path) -> None:
    secret, public = model.with_name("mini.key"), model.with_name("mini.pub")
    minisign("-G", "-W", "-s", secret, "-p", public)
    minisign("-Sm", model, "-s", secret)
    assert export.load(model, public_key=public).inputs
    export.sign(model, secret)
    assert export.load(model, public_key=public).inputs
    minisign("-Vm", model, "-p", public)
    minisign("-Sm", model, "-s", model.with_name("signing.key"))  # a key of ours
    assert export.load(model, public_key=model.with_name("signing.pub")).inputs


@needs_minisign
@pytest.mark.slow
def test_passwords_of_minisign_and_of_ours(model: Path) -> None:
    """scrypt takes a GiB of memory for each."""
    secret, public = model.with_name("mini.key"), model.with_name("mini.pub")
    minisign("-G", "-s", secret, "-p", public, typed="secret\nsecret\n")
    export.sign(model, secret, password=lambda: "secret")
    assert export.load(model, public_key=public).inputs
    with pytest.raises(ArgumentError, match="expected the password that it was encrypted with"):
        export.sign(model, secret, password="Secret")
    key = export.generate_key(model.with_name("own.key"), password="mine")
    minisign("-Sm", model, "-s", model.with_name("own.key"), typed="mine\n")
    assert export.load(model, public_key=key).inputs


def test_damaged_secret_keys_are_refused(model: Path) -> None:
    path = model.with_name("signing.key")
    lines = path.read_bytes().splitlines()
    raw = base64.b64decode(lines[1])
    for position in (0, 2, 4, 70, 102):  # the algorithms, the seed, the public key
        changed = bytearray(raw)
        changed[position] ^= 1
        path.write_bytes(lines[0] + b"\n" + base64.b64encode(changed) + b"\n")
        with pytest.raises(ArgumentError, match=r"^secret key: "):
            export.sign(model, path)
    for other in (
        b"",
        lines[0],
        lines[0] + b"\n" + lines[1][:-4],
        model.with_name("signing.pub").read_bytes(),
    ):
        path.write_bytes(other)
        with pytest.raises(ArgumentError, match="secret key: expected a file of minisign, got another"):
            export.sign(model, path)
    encrypted = bytearray(raw)
    encrypted[2:4], encrypted[38:54] = b"Sc", b"\xff" * 16
    path.write_bytes(lines[0] + b"\n" + base64.b64encode(encrypted) + b"\n")
    with pytest.raises(ArgumentError, match="expected a password for this key, got none"):
        export.sign(model, path)
    with pytest.raises(ArgumentError, match="up to 4 GiB to check, got more"):
        export.sign(model, path, password="a")


# --- files


def test_a_signed_file_is_loaded_by_its_key_and_by_no_other(model: Path, tmp_path: Path) -> None:
    public = tmp_path / "signing.pub"
    export.sign(model, tmp_path / "signing.key")
    other = export.generate_key(tmp_path / "other.key")
    text = public.read_text().splitlines()[1]
    before = model.read_bytes()
    for key in (public, str(public), text):
        assert export.load(model, public_key=key).parameter("scale").tolist() == [3]
    with pytest.raises(
        SignatureError, match=r"^signature: expected key \w{16}, got a signature by key \w{16}$"
    ):
        export.load(model, public_key=other)
    changed = bytearray(before)
    changed[-1] ^= 1
    model.write_bytes(changed)
    with pytest.raises(SignatureError, match="the file is not what key"):
        export.load(model, public_key=public)
    shutil.copy(FOLDER / "good/captured.pgrd", model)  # a good file, but another one
    with pytest.raises(SignatureError, match="the file is not what key"):
        export.load(model, public_key=public)
    assert export.load(model).inputs  # no key, no check
    signature = (tmp_path / "model.pgrd.minisig").read_bytes()
    assert export.load(before, public_key=text, signature=signature).inputs
    assert export.load(before, public_key=text, signature=tmp_path / "model.pgrd.minisig").inputs


def test_a_file_without_a_signature_is_refused(model: Path) -> None:
    public = model.with_name("signing.pub")
    with pytest.raises(SignatureError, match=r"got none: it belongs in .*/model.pgrd.minisig"):
        export.load(model, public_key=public)
    with pytest.raises(SignatureError, match="got none: it belongs in the argument signature"):
        export.load(model.read_bytes(), public_key=public)
    with pytest.raises(ArgumentError, match="signature: expected a public_key with it, got none"):
        export.load(model, signature=b"")
    with pytest.raises(ArgumentError, match="public key: expected one of minisign"):
        export.load(model, public_key="RW" + "A" * 54)
    with pytest.raises(ArgumentError, match="public key: expected one of minisign"):
        export.load(model, public_key=KEY.public.text[:-1])  # as when the last letter was not copied
    with pytest.raises(FileNotFoundError):
        export.load(model, public_key="missing.pub")


def test_every_byte_of_a_file_and_of_its_signature_is_checked(model: Path) -> None:
    export.sign(model, model.with_name("signing.key"), comment="1")
    beside = Path(f"{model}.minisig")
    signature, data = beside.read_bytes(), model.read_bytes()
    ignored = signature.index(b"\n")  # the untrusted comment
    for position in range(0, len(data), 37):
        changed = bytearray(data)
        changed[position] ^= 4
        with pytest.raises(SignatureError):
            export.load(changed, public_key=model.with_name("signing.pub"), signature=signature)
    for position in range(ignored + 1, len(signature) - 1):
        line = bytearray(signature)
        line[position] ^= 4
        with pytest.raises(SignatureError):
            export.load(data, public_key=model.with_name("signing.pub"), signature=bytes(line))


@pytest.mark.parametrize("load", ["load", "load_language_model", "load_text_encoder", "load_text_classifier"])
def test_each_loader_checks_the_signature_before_anything_else(load: str, model: Path) -> None:
    program, values = read_program((FOLDER / "good/captured.pgrd").read_bytes())
    kinds = {
        "load_language_model": "text-generation",
        "load_text_encoder": "feature-extraction",
        "load_text_classifier": "text-classification",
    }
    if load in kinds:
        model.write_bytes(Bundle(kinds[load], {}, ({"main": program},)).head([values]) + bytes(values))
    public = model.with_name("signing.pub")
    export.sign(model, model.with_name("signing.key"))
    loader = getattr(export, load)
    if load == "load":
        loader(model, public_key=public)
    else:
        with pytest.raises(Exception, match="settings") as caught:  # signed, but without settings
            loader(model, public_key=public)
        assert not isinstance(caught.value, SignatureError)
    with pytest.raises(SignatureError):
        loader(model, public_key=KEY.public.text)
    model.write_bytes(b"PGRX")
    with pytest.raises(SignatureError):
        loader(model, public_key=public)


def test_what_is_damaged_is_not_signed(model: Path) -> None:
    model.write_bytes(model.read_bytes()[:-1])
    with pytest.raises(ProgramError):
        export.sign(model, model.with_name("signing.key"))
    assert not Path(f"{model}.minisig").exists()


def test_comments_are_one_line(model: Path) -> None:
    for comment in ("a\nb", "a\rb"):
        with pytest.raises(ArgumentError, match="sign: comment: expected one line"):
            export.sign(model, model.with_name("signing.key"), comment=comment)
    export.sign(model, model.with_name("signing.key"), comment="\u00e9 head:00")
    assert export.load(model, public_key=model.with_name("signing.pub")).inputs


def test_keys_are_their_owner_s_and_never_overwritten(model: Path) -> None:
    secret, public = model.with_name("signing.key"), model.with_name("signing.pub")
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    before = secret.read_bytes(), public.read_bytes()
    for path in (secret, public):
        with pytest.raises(ArgumentError, match=r"expected a new file, got .*/signing\.\w+, which exists"):
            export.generate_key(path)
    secret.unlink()
    with pytest.raises(ArgumentError, match=r"signing\.pub, which exists"):
        export.generate_key(secret)
    assert public.read_bytes() == before[1]


def test_without_cryptography_it_says_what_to_install(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def without(name: str, *arguments: Any) -> Any:
        if name.startswith("cryptography"):
            raise ModuleNotFoundError(name)
        return real(name, *arguments)

    export.sign(model, model.with_name("signing.key"))
    monkeypatch.setattr(importlib, "import_module", without)
    named = r'the package cryptography is not installed: pip install "polygrad\[signatures\]"'
    with pytest.raises(DeviceError, match=named):
        export.load(model, public_key=model.with_name("signing.pub"))
    with pytest.raises(DeviceError, match=named):
        export.sign(model, model.with_name("signing.key"))
    with pytest.raises(DeviceError, match=named):
        export.generate_key(model.with_name("new.key"))
    assert not model.with_name("new.key").exists()


# --- the command line


def status(*arguments: object) -> int:
    return main("1.2.3", [str(x) for x in arguments])


def test_the_command_line_signs_and_inspects(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    secret, public = model.with_name("new.key"), model.with_name("new.pub")
    assert status("inspect", model) == 0
    assert capsys.readouterr().out.endswith("\n\nnot signed\n")
    assert status("sign", "--make-key", secret, "--no-password") == 0
    key = public.read_text().splitlines()[1]
    assert capsys.readouterr().out.endswith(f"the public key: {key}\n")
    assert status("sign", model, "--key", secret, "--comment", "release 1") == 0
    assert capsys.readouterr().out == f"{model}.minisig\n"
    number = read_public_key(key.encode()).name
    assert status("inspect", model) == 0
    assert capsys.readouterr().out.endswith(f"signed by key {number}, not verified: give --public-key\n")
    assert status("inspect", model, "--public-key", key) == 0
    assert f"signed by key {number}, verified: timestamp:" in capsys.readouterr().out
    assert status("inspect", model, "--public-key", public, "--json") == 0
    found = json.loads(capsys.readouterr().out)["signature"]
    assert found["key"] == number and found["verified"] and "\trelease 1\t" in found["comment"]
    assert status("inspect", model, "--public-key", model.with_name("signing.pub")) == 1
    assert "signature: expected key" in capsys.readouterr().err
    for wrong in (["sign", model], ["sign", "--key", secret], ["sign", model, "--make-key", secret]):
        assert status(*wrong) == 1
    assert status("inspect", FOLDER, "--public-key", key) == 1


def test_the_command_line_asks_for_passwords(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = ["one", "another"]
    monkeypatch.setattr("getpass.getpass", lambda prompt: answers.pop(0))
    assert status("sign", "--make-key", model.with_name("new.key")) == 1 and answers == []
    answers = [""]
    assert status("sign", "--make-key", model.with_name("new.key")) == 1
    assert not model.with_name("new.key").exists()
    answers = []  # a key without a password is not asked for
    assert status("sign", model, "--key", model.with_name("signing.key")) == 0
