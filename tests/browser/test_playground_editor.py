"""The playground's editor, as visitors use it: edits last, links hold programs, devices are chosen."""

from __future__ import annotations

from typing import Any

import pytest
from javascript_hosts import built
from playground_driver import seen_by

pytestmark = [pytest.mark.e2e, built, pytest.mark.slow]
ADDED = 'console.log("é–𝄞", 6 * 7);'


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return seen_by("playground_editor.mjs", tmp_path_factory.mktemp("editor"))


def test_nothing_violates_the_policy(seen: Any) -> None:
    assert seen["complaints"] == []


def test_edits_last_and_lead_back(seen: Any) -> None:
    edited = seen["edited"]
    assert edited["before"] is False
    assert edited["note"] == "Edited. This browser keeps your version."
    assert ADDED not in edited["other"]
    assert ADDED in edited["kept"]
    assert ADDED not in edited["reverted"] and "optim.Adam" in edited["reverted"]
    assert ADDED in edited["undone"]


def test_a_link_holds_the_program_and_no_server_sees_it(seen: Any) -> None:
    shared = seen["shared"]
    fragment = shared["link"].split("#")[1]
    assert fragment.startswith("editor/xor.js/") and len(fragment) < 1000
    assert ADDED in shared["source"]
    assert shared["asked"] == []


def test_a_shared_program_runs_by_a_click_alone(seen: Any) -> None:
    shared = seen["shared"]
    assert "Read it before you run it" in shared["note"]
    assert shared["output"] == ""
    assert shared["unedited"] == []
    assert "xor: [ 0, 1, 1, 0 ]" in shared["ran"] and "é–𝄞 42" in shared["ran"]


def test_a_shared_program_that_is_edited_is_kept(seen: Any) -> None:
    shared = seen["shared"]
    assert shared["url"].endswith("#editor")
    assert "// mine" in shared["kept"] and ADDED in shared["kept"]


def test_a_damaged_link_says_so(seen: Any) -> None:
    assert "The link did not open" in seen["shared"]["damaged"]
    assert "the link to a program is damaged" in seen["shared"]["damaged"]


def test_programs_run_on_the_chosen_device(seen: Any) -> None:
    gpu = seen["gpu"]
    assert gpu["devices"][0] == ["WASM", False]
    if gpu["devices"][1] == ["WEBGPU (no GPU)", True]:
        pytest.skip("this Chromium has no adapter")
    assert "WEBGPU [2.0, 4.0]" in gpu["ran"]["tensor.py"]
    assert "WEBGPU [ 2, 4 ]" in gpu["ran"]["tensor.js"]
    assert "WASM [2.0, 4.0]" in gpu["ran"]["back"]


@pytest.mark.parametrize(
    ("file", "member", "signature", "sentence"),
    [
        ("tensor.js", "softmax", "options?: { axis, dtype }) → Tensor", "exp(this) / sum(exp(this)) along"),
        ("tensor.py", "log_softmax", "(axis=-1, dtype=None) → Tensor", "The logarithm of softmax"),
    ],
)
def test_the_editor_completes_and_explains(
    seen: Any, file: str, member: str, signature: str, sentence: str
) -> None:
    helped = seen["helped"][file]
    assert helped["members"][0] == member
    assert signature in helped["info"] and sentence in helped["info"]
    assert f"x.{member}" in helped["accepted"]
    assert signature in helped["help"] and signature in helped["announced"]
    assert helped["closed"] == 0


@pytest.mark.parametrize("file", ["tensor.js", "tensor.py"])
def test_a_variable_means_what_it_was_made_by(seen: Any, file: str) -> None:
    helped = seen["helped"][file]
    assert {"weight", "bias"} <= set(helped["variable"]) and "softmax" not in helped["variable"]
    assert {"compileStep", "compile_step"} & set(helped["imported"])
    assert "Linear" in helped["hovered"] and "features" in helped["hovered"].lower()


@pytest.mark.parametrize("file", ["tensor.js", "tensor.py"])
def test_other_libraries_have_no_tensors(seen: Any, file: str) -> None:
    assert "softmax" not in str(seen["helped"][file]["foreign"])


def test_tooltips_close_when_their_program_is_left(seen: Any) -> None:
    assert seen["tooltips"] == {"hover": 0, "completion": 0, "help": 0}  # see the complaints, too


def test_an_error_of_a_program_that_was_left_moves_no_cursor(seen: Any) -> None:
    left = seen["left"]
    assert "late" in left["late"] and "line 3" in left["late"]
    assert left["line"] == ["1"] and left["runs"]


def test_a_new_worker_stops_the_program_that_runs(seen: Any) -> None:
    assert "stopped" in seen["left"]["stopped"] and "finished" in seen["left"]["after"]


def test_an_error_in_a_timer_is_output(seen: Any) -> None:
    assert "in a timer" in seen["left"]["timer"] and seen["left"]["status"] == "ready"
    assert "did not start" not in seen["left"]["timer"]


def test_links_of_strangers_are_text(seen: Any) -> None:
    hostile = seen["hostile"]
    names = [title.split(" (shared-")[0] for title in hostile["titles"]]
    assert names == ["<img src=x onerror=alert(1)>.js", "constructor"]
    assert hostile["source"] == "</script><b>hostile</b>" and hostile["elements"] == 0
    assert "at most 1000000 characters" in hostile["huge"] and hostile["kept"] == hostile["source"]


def test_a_browser_without_room_runs_programs(seen: Any) -> None:
    roomless = seen["roomless"]
    assert roomless["failures"] == 0 and "does not keep it" in roomless["note"]
    assert "é–𝄞 42" in roomless["ran"]
