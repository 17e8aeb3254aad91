"""The small model of the playground's chat: the script that trains it, its data, and the trained model."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import transformers

from polygrad import hf

ROOT = Path(__file__).parents[2]
DATA = "de69201351c5c88787ba6bd9a06f93ce77fa5bf7d603ba56bb6f57c4edc72886"


@pytest.fixture(scope="module")
def scripts() -> Iterator[Any]:
    """The modules of the script."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import chat_dialogues
        import chat_model

        yield chat_model, chat_dialogues
    finally:
        sys.path.pop(0)


@pytest.fixture(scope="module")
def poly(scripts: Any) -> Any:
    return hf.load_hf(scripts[0].FOLDER, max_batch=16, dtype="float32")


def asked(question: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": question}]


def test_dialogues_are_questions_with_answers_that_follow_the_seed(scripts: Any) -> None:
    _, dialogues = scripts
    talks = list(dialogues.dialogues(500))
    assert talks == list(dialogues.dialogues(500)) != list(dialogues.dialogues(500, seed=1))
    assert talks[:100] == list(dialogues.dialogues(100))
    for talk in talks:
        assert [message["role"] for message in talk] == ["user", "assistant"] * (len(talk) // 2)
        assert all(message["content"].strip() == message["content"] != "" for message in talk)


def test_sums_of_the_dialogues_are_right(scripts: Any) -> None:
    answers = [answer for _, answer in scripts[1].questions(2000, seed=3) if "=" in answer]
    assert len(answers) > 200
    for answer in answers:
        term, result = answer.removesuffix(".").replace("×", "*").split(" = ")
        assert eval(term) == int(result)  # numbers and operators of ours


def test_a_name_is_asked_for_after_it_was_said(scripts: Any) -> None:
    talks = [talk for talk in scripts[1].dialogues(1000) if any("Your name is" in m["content"] for m in talk)]
    assert len(talks) > 30
    for talk in talks:
        texts = [message["content"] for message in talk]
        answer = next(text for text in texts if "Your name is" in text)
        name = answer.removeprefix("Your name is ").removesuffix(".")
        assert f"Nice to meet you, {name}!" in texts[: texts.index(answer)]


def test_the_script_trains_and_writes_a_folder_that_transformers_reads(scripts: Any, tmp_path: Path) -> None:
    script, _ = scripts
    model, report = script.trained(60, steps=2)
    assert report.steps == 2 and len(report.losses) == 2 and report.losses[0] < 8
    model.save(tmp_path)
    tokens = hf.load_hf(tmp_path).tokenizer
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    text = "What is 12 + 3? Brasília × 2."
    assert tokens.encode(text) == theirs.encode(text)
    assert theirs.decode(theirs.encode(text)) == text
    written = tokens.apply_chat_template(asked(text), add_generation_prompt=True)
    assert written == theirs.apply_chat_template(asked(text), tokenize=False, add_generation_prompt=True)


def test_the_model_is_small_and_in_no_package(scripts: Any) -> None:
    files = list(scripts[0].FOLDER.iterdir())
    assert sum(file.stat().st_size for file in files) < 3e6
    assert ROOT / "polygrad" not in scripts[0].FOLDER.parents


@pytest.mark.slow
def test_the_model_answers_nine_of_ten_questions_right(scripts: Any, poly: Any) -> None:
    questions, answers = zip(*scripts[1].questions(100, seed=7))
    given = poly.generate([asked(question) for question in questions], max_new_tokens=48, temperature=0)
    wrong = [(q, a.text, b) for q, a, b in zip(questions, given, answers) if a.text != b]
    assert len(wrong) <= 10, wrong


def test_the_model_answers_as_transformers_runs_it(scripts: Any, poly: Any) -> None:
    folder = scripts[0].FOLDER
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype="float32")
    for question in ("What is 7 + 5?", "What colour is the sky?", "What is polygrad?"):
        ids = tokenizer.apply_chat_template(
            asked(question), add_generation_prompt=True, return_tensors="pt", return_dict=True
        )
        out = theirs.generate(**ids, max_new_tokens=48, do_sample=False)
        text = tokenizer.decode(out[0, ids["input_ids"].shape[1] :], skip_special_tokens=True)
        assert poly.generate(asked(question), max_new_tokens=48, temperature=0).text == text


@pytest.mark.slow
def test_all_data_of_the_script_are_the_same_everywhere(scripts: Any) -> None:
    script, dialogues = scripts
    talks = list(dialogues.dialogues(script.DIALOGUES, script.SEED))
    assert hashlib.sha256(json.dumps(talks).encode()).hexdigest() == DATA
    files = script.tokenizer_files(message["content"] for talk in talks for message in talk)
    committed = script.FOLDER / "tokenizer.json"
    assert json.loads(files["tokenizer.json"]) == json.loads(committed.read_bytes())
