"""The playground's chat with a small model, and its fine-tuning with LoRA."""

from __future__ import annotations

import json
import re
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import peft
import pytest
import transformers
from javascript_hosts import ROOT, built
from playground_driver import seen_by

pytestmark = [pytest.mark.e2e, built, pytest.mark.slow]

MODEL = ROOT / "examples" / "data" / "chat"
QUESTION = [{"role": "user", "content": "What is your name?"}]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("chat")


@pytest.fixture(scope="module")
def seen(folder: Path) -> Any:
    return seen_by("playground_chat.mjs", folder)


def test_nothing_violates_the_policy(seen: Any) -> None:
    assert seen["tuning"]["complaints"] == []


def test_questions_are_answered_right(seen: Any) -> None:
    chat = seen["chat"]
    assert chat["suggestions"] == 5
    assert chat["suggested"] == "The sky is blue."
    assert chat["sum"]["answer"] == "7 + 5 = 12."
    assert re.fullmatch(r"\d+ tokens · \d+ tokens/s", chat["sum"]["note"])


def test_the_conversation_is_remembered_until_a_new_one_begins(seen: Any) -> None:
    chat = seen["chat"]
    assert chat["named"]["answer"] == "Nice to meet you, Ada!"
    assert chat["name"]["answer"] == "Your name is Ada."
    assert chat["left"] == 0


def test_an_answer_ends_at_its_length_or_when_it_is_stopped(seen: Any) -> None:
    chat = seen["chat"]
    assert chat["short"]["note"].startswith("16 tokens, as many as it may have")
    assert chat["stopped"]["note"] == "stopped"
    assert chat["stopped"]["answer"].startswith("Once") and not chat["stopped"]["answer"].endswith(".")
    assert chat["after"]["answer"] == "Grass is green."


def test_a_folder_from_the_disk_is_talked_with_and_a_damaged_file_is_not(seen: Any) -> None:
    own = seen["own"]
    assert own["opened"] == "You talk with chat, a LlamaForCausalLM."
    assert own["answer"]["answer"] == "Snow is white."
    assert own["failure"].startswith("ModelError: none.gguf: ")
    assert own["kept"] == "You still talk with chat."
    assert own["still"]["answer"] == "Coal is black."


def test_adapters_change_the_answer_while_the_loss_falls(seen: Any) -> None:
    tuning = seen["tuning"]
    assert tuning["failures"] == 0
    first, last = map(float, re.findall(r"from ([\d.]+) to ([\d.]+)\. ", tuning["note"])[0])
    assert tuning["note"].startswith("done after 30 steps") and last < 0.5 * first
    assert tuning["before"] == "My name is Poly."
    assert tuning["after"] == "Arr, I be Captain Poly!"
    assert tuning["greeting"] == "Ahoy, matey!"


def test_an_empty_text_is_an_error_and_a_run_can_be_stopped(seen: Any) -> None:
    tuning = seen["tuning"]
    assert tuning["empty"] == "RangeError: expected a text to learn from, got an empty one"
    assert tuning["button"] == "Train"
    assert re.match(r"stopped after \d+ steps", tuning["stopped"])
    assert tuning["prose"].startswith("Shall I compare")


def test_both_go_on_without_a_network(seen: Any) -> None:
    assert seen["tuning"]["offline"]["answer"] == "Snow is white."


def test_peft_answers_with_the_downloaded_adapter_as_the_page_does(seen: Any, folder: Path) -> None:
    tuning = seen["tuning"]
    assert tuning["downloads"] == ["adapter_config.json", "adapter_model.safetensors"]
    tokenizer = transformers.AutoTokenizer.from_pretrained(MODEL)
    base = transformers.AutoModelForCausalLM.from_pretrained(MODEL, dtype="float32")
    model = peft.PeftModel.from_pretrained(base, folder)
    assert tokenizer.decode(tokens_of(model, tokenizer), skip_special_tokens=True) == tuning["after"]


def tokens_of(model: Any, tokenizer: Any) -> list[int]:
    """What transformers answers to the question for the name."""
    ids = tokenizer.apply_chat_template(
        QUESTION, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    out = model.generate(**ids, max_new_tokens=64, do_sample=False)
    return out[0, ids["input_ids"].shape[1] :].tolist()  # type: ignore[no-any-return]


def test_the_downloaded_models_answer_as_the_page_does(seen: Any, folder: Path, tmp_path: Path) -> None:
    """The exported one in `polygrad/runtime`, the folder in transformers: with the same tokens."""
    assert seen["tuning"]["models"] == ["poly-tuned.pgrd", "poly-tuned.zip"]
    assert seen["tuning"]["downloadNote"] == ""  # once another run has begun
    job = {
        "loader": "loadLanguageModel",
        "source": str(folder / "poly-tuned.pgrd"),
        "cases": [{"prompt": QUESTION, "options": {"maxNewTokens": 64, "temperature": 0}}],
    }
    (tmp_path / "jobs.json").write_text(json.dumps([job]))
    entries = (ROOT / "node" / "dist" / name for name in ("runtime.js", "tokenizers.js"))
    driver = ROOT / "tests" / "export" / "run_text_models.mjs"
    command = list(map(str, ["node", driver, *entries, tmp_path / "jobs.json"]))
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    (answer,) = json.loads(done.stdout)[0]["answers"]
    assert answer["text"] == seen["tuning"]["after"]

    with zipfile.ZipFile(folder / "poly-tuned.zip") as archive:
        archive.extractall(tmp_path / "tuned")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "tuned")
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "tuned")
    end = tokenizer.eos_token_id
    assert tokens_of(model, tokenizer) in (answer["tokens"], [*answer["tokens"], end])


def test_nothing_is_wider_than_a_phone(seen: Any) -> None:
    assert seen["widths"] == {"chat": 390, "fine-tune": 390}
