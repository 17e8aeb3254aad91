"""Exported models that read and write text, in Node and in pages under the strictest policy: the same tokens,
texts and values as of their Instances in Python."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_text_models
from exported_text_models import COUNT, SAMPLINGS, TEXTS, TURNS, exported, model
from hf_tokenizers import KINDS, special_tokens, strings, trained
from javascript_hosts import ROOT, built

from polygrad import Device, hf
from polygrad.hf.tokenizer_export import tokenizer_file

pytestmark = [pytest.mark.e2e, built, pytest.mark.timeout(900)]
HERE = Path(__file__).parent
ENTRIES = {
    "esm": (ROOT / "node/dist/runtime.js", ROOT / "node/dist/tokenizers.js"),
    "cjs": (ROOT / "node/dist/cjs/runtime.js", ROOT / "node/dist/cjs/tokenizers.js"),
}
PROMPTS = ["hello é 😀", list(range(40)), TURNS]


@pytest.fixture(autouse=True, scope="module")
def on_wasm() -> Iterator[None]:
    before = Device.DEFAULT
    Device.DEFAULT = "WASM"
    yield
    Device.DEFAULT = before


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the exported models, and what is asked and expected of each in `jobs.json`."""
    out = tmp_path_factory.mktemp("models")
    talker = model("talker")
    pairs = [(prompt, {}) for prompt in PROMPTS]
    pairs += [(PROMPTS[i % 3], options) for i, options in enumerate(SAMPLINGS.values())]
    cases = [_case(talker, prompt, options) for prompt, options in pairs]
    whole = talker.generate("hello", max_new_tokens=20, stop_tokens=())
    endings: list[dict[str, Any]] = [{"stop_tokens": [whole.tokens[3]]}, {"stop": whole.text[5:7]}]
    cases += [_case(talker, "hello", options) for options in endings]
    jobs = [_job(talker, out / "talker.pgrd", cases)]
    for name in ("gpt2", "Q4_0"):
        instance = model(name)
        cases = [_case(instance, prompt, {}) for prompt in ([5, 6, 7], PROMPTS[1])]
        jobs.append(_job(instance, out / f"{name}.pgrd", cases))
    embedder = hf.load_hf(tiny_text_models.embedder()[0])
    expected = {"texts": TEXTS, "expected": embedder.embed(TEXTS).tolist()}
    jobs.append(_job(embedder, out / "embedder.pgrd", [], "loadTextEncoder") | expected)
    classifier = hf.load_hf(tiny_text_models.classifier()[0])
    expected = {"texts": TEXTS, "expected": classifier.classify(TEXTS)}
    jobs.append(_job(classifier, out / "classifier.pgrd", [], "loadTextClassifier") | expected)
    (out / "jobs.json").write_text(json.dumps(jobs))
    return out


def _job(instance: Any, path: Path, cases: list[Any], loader: str = "loadLanguageModel") -> dict[str, Any]:
    exported(instance, path)
    return {"loader": loader, "source": f"files/{path.name}", "cases": cases}


def _case(instance: Any, prompt: Any, options: dict[str, Any]) -> dict[str, Any]:
    options = {"max_new_tokens": COUNT, "stop_tokens": [], **options}
    answer = instance.generate(prompt, **options)
    expected = {"text": answer.text, "tokens": list(answer.tokens), "finishReason": answer.finish_reason}
    if "seed" in options:
        options["seed"] = str(options["seed"])  # of 64 bits
    return {"prompt": prompt, "options": options, "expected": expected}


def node(*command: object) -> Any:
    done = subprocess.run(["node", *map(str, command)], capture_output=True, text=True, timeout=240, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def jobs_of(folder: Path) -> list[dict[str, Any]]:
    jobs = json.loads((folder / "jobs.json").read_text())
    return [{**job, "source": str(folder / Path(job["source"]).name)} for job in jobs]


def in_node(folder: Path, tmp_path: Path, jobs: list[dict[str, Any]], entry: str = "esm") -> Any:
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    return node(HERE / "run_text_models.mjs", *ENTRIES[entry], tmp_path / "jobs.json")


def check(jobs: list[dict[str, Any]], results: list[dict[str, Any]], folder: Path) -> None:
    """Results are those that Python gave."""
    for job, result in zip(jobs, results, strict=True):
        assert "error" not in result, result
        assert result["loaded"] == (folder / Path(job["source"]).name).stat().st_size
        for case, answer in zip(job["cases"], result["answers"], strict=True):
            assert "error" not in answer, (case, answer)
            assert {name: answer[name] for name in case["expected"]} == case["expected"], case
        if "expected" in job:
            expected, got = job["expected"], result["values"]
            if job["loader"] == "loadTextClassifier":
                assert [list(x) for x in got] == [list(x) for x in expected]
                expected, got = ([list(x.values()) for x in xs] for xs in (expected, got))
            np.testing.assert_allclose(got, expected, atol=1e-6)


@pytest.mark.parametrize("entry", ENTRIES)
def test_node_gives_what_python_does_within_1e_6(entry: str, folder: Path, tmp_path: Path) -> None:
    jobs = jobs_of(folder)
    check(jobs, in_node(folder, tmp_path, jobs, entry), folder)


def test_a_page_and_a_worker_give_what_python_does_under_the_strictest_policy(folder: Path) -> None:
    seen = node(HERE / "page_text.mjs", folder)
    assert seen["complaints"] == []
    jobs = json.loads((folder / "jobs.json").read_text())
    for place in ("inPage", "inWorker"):
        check(jobs, seen[place], folder)
    assert seen["ticks"] > 3  # the page was not held up


def test_an_answer_can_be_ended_and_the_next_one_is_right(folder: Path, tmp_path: Path) -> None:
    job = jobs_of(folder)[0]
    case = job["cases"][0]
    ended = {"prompt": [9, 8, 7], "options": {"max_new_tokens": 50, "stop_tokens": []}, "abortAfter": 4}
    (result,) = in_node(folder, tmp_path, [{**job, "cases": [ended, case]}])
    first, second = result["answers"]
    assert first["error"] == "Error: enough" and first["pieces"] == 4
    assert second["tokens"] == case["expected"]["tokens"]


@pytest.mark.parametrize(
    ("prompt", "options", "message"),
    [
        ([1] * 256, {}, "prompt: expected at most 255 tokens, got 256: shorten it"),
        ([999], {}, "prompt: expected ids of the model's 259 tokens, got 999"),
        ([], {}, "prompt: expected ids of the model's 259 tokens, got none"),
        ([1], {"topP": 2}, "topP: expected more than 0, at most 1, got 2"),
        ([1], {"maxNewTokens": 0}, "maxNewTokens: expected an integer from 1, got 0"),
        ([1], {"logitBias": {"999": 1}}, "logitBias: expected numbers by tokens below 259, got 999: 1"),
        ([1], {"stop": ""}, "stop: expected strings with characters"),
        ("half \ud83d", {}, "text: expected whole characters"),
    ],
)
def test_what_does_not_fit_is_refused(
    prompt: Any, options: Any, message: str, folder: Path, tmp_path: Path
) -> None:
    job = jobs_of(folder)[0]
    case = {"prompt": prompt, "options": options}
    (result,) = in_node(folder, tmp_path, [{**job, "cases": [case]}])
    (answer,) = result["answers"]
    assert answer["error"].startswith(f"ProgramError: {message}")
    assert answer["pieces"] == 0


def test_without_tokenizers_there_are_token_ids_alone(folder: Path, tmp_path: Path) -> None:
    job = jobs_of(folder)[0]
    case = job["cases"][1]  # a list of tokens
    cases = [case, {"prompt": "hello"}, {"prompt": TURNS}, {"prompt": [1], "options": {"stop": "a"}}]
    (result,) = in_node(folder, tmp_path, [{**job, "withText": False, "cases": cases}])
    tokens, text, chat, stop = result["answers"]
    assert tokens["tokens"] == case["expected"]["tokens"] and tokens["text"] == ""
    for answer, what in ((text, "prompt"), (chat, "chat"), (stop, "stop")):
        assert answer["error"].startswith(f"ProgramError: {what}: expected a tokenizer, got none")


@pytest.mark.parametrize("damage", ["cut", "header", "code", "tail", "none of it"])
def test_a_damaged_file_is_refused(damage: str, folder: Path, tmp_path: Path) -> None:
    good = (folder / "talker.pgrd").read_bytes()
    bad = {
        "cut": good[:-7],
        "header": good[:20] + b"\xff" + good[21:],
        "code": good[: len(good) // 4],
        "tail": good + b"\0",
        "none of it": b"",
    }[damage]
    (tmp_path / "m.pgrd").write_bytes(bad)
    job = {"loader": "loadLanguageModel", "source": str(tmp_path / "m.pgrd")}
    (result,) = in_node(folder, tmp_path, [job])
    assert result["error"].startswith("ProgramError: ")


def test_each_loader_names_the_right_one_for_another_file(folder: Path, tmp_path: Path) -> None:
    jobs = [
        {"loader": loader, "source": str(folder / "talker.pgrd")} for loader in ("load", "loadTextEncoder")
    ]
    step, encoder = in_node(folder, tmp_path, jobs)
    for result, expected in ((step, "an exported step"), (encoder, "a file for feature-extraction")):
        assert (
            f"expected {expected}, got a file for text-generation: use loadLanguageModel" in result["error"]
        )


@pytest.mark.parametrize("kind", KINDS)
def test_tokenizers_give_the_tokens_and_texts_that_python_s_do(kind: str, tmp_path: Path) -> None:
    judge, path = trained(kind)
    tokenizer = hf.Tokenizer(path)
    texts = strings(60, special_tokens(judge))
    rows = [tokenizer.encode(text) for text in texts]
    (tmp_path / "tokenizer.json").write_bytes(tokenizer_file(tokenizer, for_javascript=True))
    (tmp_path / "texts.json").write_text(json.dumps(texts))
    script = f"""
        import {{ readFileSync }} from "node:fs";
        import {{ openTokenizer }} from {json.dumps(str(ENTRIES["esm"][1]))};
        const tokenizer = openTokenizer(readFileSync({json.dumps(str(tmp_path / "tokenizer.json"))}));
        const texts = JSON.parse(readFileSync({json.dumps(str(tmp_path / "texts.json"))}, "utf8"));
        const rows = texts.map((text) => tokenizer.encode(text));
        const short = texts.map((text) => tokenizer.encode(text, {{ maxLength: 5 }}));
        console.log(JSON.stringify({{ rows, short, decoded: rows.map((row) => tokenizer.decode(row)) }}));
    """
    (tmp_path / "run.mjs").write_text(script)
    seen = node(tmp_path / "run.mjs")
    assert seen["rows"] == rows
    assert seen["decoded"] == [tokenizer.decode(row) for row in rows]
    assert seen["short"] == [tokenizer.encode_batch([text], max_length=5).ids[0] for text in texts]


def test_the_guide_runs_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python exports and signs the guide's models; scripts generate, and load what was signed."""
    guide = (ROOT / "docs" / "guides" / "exporting.md").read_text(encoding="utf-8")
    blocks = re.findall(
        r"^```(python|js)\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", guide, re.MULTILINE | re.DOTALL
    )
    run = [(kind, source, printed) for kind, source, printed in blocks if printed]
    assert [kind for kind, _, _ in run] == ["python", "python", "js", "python", "js"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Device, "DEFAULT", Device.DEFAULT)
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "polygrad").symlink_to(ROOT / "node")
    namespace: dict[str, object] = {"__name__": "readme"}
    for kind, source, printed in run:
        if kind == "python":
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(source, "exporting.md", "exec"), namespace)
            assert out.getvalue() == printed
            continue
        (tmp_path / "main.mjs").write_text(source)
        done = subprocess.run(["node", "main.mjs"], capture_output=True, text=True, timeout=60, cwd=tmp_path)
        assert (done.stdout, done.stderr) == (printed, "")


def test_the_runtime_and_its_tokenizers_are_small() -> None:
    """Generation in 40 KB, with text in 60."""
    sizes = [
        len(gzip.compress((ROOT / f"web/dist/polygrad-{name}.mjs").read_bytes()))
        for name in ("runtime", "tokenizers")
    ]
    assert sizes[0] <= 40_000 and sum(sizes) <= 60_000
