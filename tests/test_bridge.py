"""The Python side of a binding, driven as one drives it: numbers, names, plain values."""

from __future__ import annotations

import gc
import json
import math
import weakref
from typing import Any

import pytest

from polygrad import Tensor, nn
from polygrad.bridge import Session, describe
from polygrad.errors import AxisError, OverflowError_
from polygrad.onnx.instance import EXAMPLE


@pytest.fixture
def session() -> Session:
    return Session()


def make(session: Session, handle: int, values: list[float]) -> None:
    text = json.dumps([[values], {"d": []}])
    assert session.call_packed("$tensor", handle, text) is None


def elements(session: Session, handle: int) -> Any:
    found = session.read(handle)
    assert isinstance(found, memoryview), found
    return found.cast("f").tolist()


def error_of(text: Any) -> dict[str, Any]:
    assert isinstance(text, str) and text.startswith("!"), text
    return json.loads(text[1:])  # type: ignore[no-any-return]


def test_handles_values_and_keywords_reach_the_call(session: Session) -> None:
    make(session, 1, [1.0, 2.0])
    assert session.call("Tensor.add", 2, 0b11, "", 1, 1) is None
    assert session.call("Tensor.mul", 3, 0b1, "", 2, 10) is None
    assert session.call("Tensor.sum", 4, 0b1, "axis,keepdim", 3, 0, True) is None
    assert elements(session, 3) == [20, 40] and elements(session, 4) == [60]
    assert session.call("Tensor.reshape", 5, 0b1 | 0b10 << 24, "", 3, "1,2") is None
    assert session.table[5].shape == (1, 2)
    meta = {"shape": [1], "dtype": "float32", "device": session.table[4].device, "requires_grad": None}
    assert json.loads(session.meta(4)[1:]) == meta


def test_json_stands_for_handles_slices_dicts_and_bytes(session: Session) -> None:
    make(session, 1, [1.0, 2.0, 3.0])
    text = '[{"$": 1}, {"s": [1, null, null]}, {"e": 0}, {"d": [["s", {"$": 1}]]}, {"b": 0}, NaN, {"t": [1]}]'
    handle, cut, dots, mapping, raw, nan, pair = session.decode(text, [b"ab"])
    assert handle is session.table[1] and cut == slice(1, None, None) and dots is ...
    assert mapping == {"s": handle} and raw == b"ab" and nan != nan and pair == (1,)


def test_elements_of_a_sequence_get_numbers_of_their_own(session: Session) -> None:
    make(session, 1, [3.0, 1.0, 2.0])
    assert session.call("Tensor.sort", 2, 1, "", 1) is None
    assert session.length(2) == 2
    assert session.unpack(2, 10, 2) is None
    assert elements(session, 10) == [1, 2, 3] and 2 not in session.table
    session.release([10, 11, 99])
    assert list(session.table) == [1]


@pytest.mark.parametrize(
    ("name", "args", "kind", "text"),
    [
        ("Tensor.sum", (5,), "AxisError", "got 5"),
        ("Tensor.sum", (1, 2, 3, 4), "ArgumentError", "too many positional arguments: expected (self, axis"),
        ("Tensor.nothing", (), "AttributeError", "nothing"),
        ("Tensor._with", (), "InternalError", "expected a public name"),
        ("Tensor.__class__", (), "InternalError", "expected a public name"),
        ("os.system", ("true",), "AttributeError", "os"),
    ],
)
def test_errors_are_text_with_type_message_and_traceback(
    session: Session, name: str, args: tuple[Any, ...], kind: str, text: str
) -> None:
    make(session, 1, [1.0])
    error = error_of(session.call(name, 2, 1, "", 1, *args))
    assert error["type"] == kind and text in error["message"]
    assert error["traceback"].startswith("Traceback") and 2 not in session.table


class Unlucky(ValueError):
    pass


@pytest.mark.parametrize(
    ("e", "kind", "name", "message"),
    [
        (ZeroDivisionError("division by zero"), "ZeroDivisionError", "ZeroDivisionError", "division by zero"),
        (KeyError("a"), "KeyError", "KeyError", "expected a key that is there, got 'a'"),
        (KeyError("a", "b"), "KeyError", "KeyError", "('a', 'b')"),
        (Unlucky("no"), "ValueError", "Unlucky", "no"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "odd"), "ValueError", "UnicodeDecodeError", "odd"),
        (NotImplementedError(), "NotImplementedError", "NotImplementedError", "NotImplementedError"),
        (ModuleNotFoundError("No module"), "ModuleNotFoundError", "ModuleNotFoundError", "No module"),
        (MemoryError("full"), "OutOfMemoryError", "MemoryError", "full"),
        (AxisError("axis"), "AxisError", "AxisError", "axis"),
        (OverflowError_("large"), "OverflowError", "OverflowError", "large"),
    ],
)
def test_pythons_own_errors_have_the_nearest_kind_that_is_known(
    session: Session, e: BaseException, kind: str, name: str, message: str
) -> None:
    def fail() -> None:
        raise e

    session._functions["$fail"] = fail
    error = error_of(session.call("$fail", 0, 0, ""))
    assert (error["type"], error["name"]) == (kind, name) and message in error["message"]
    assert not error["message"].startswith(f"{name}:")


def test_an_object_that_was_released_is_an_error_that_says_so(session: Session) -> None:
    assert "disposed of" in error_of(session.call("Tensor.exp", 2, 1, "", 7))["message"]
    assert "disposed of" in error_of(session.read(7))["message"]


def test_a_closed_session_holds_nothing(session: Session) -> None:
    assert session.call("Tensor.full", 1, 1 << 24, "", "2", 3.0) is None
    tensor = weakref.ref(session.table[1])
    session.close()
    assert not session.table and tensor() is None


def test_a_learning_rate_is_written_to_its_tensor(session: Session) -> None:
    optimizer = nn.optim.SGD([Tensor([1.0])], lr=0.5)
    rate = optimizer.lr
    session.table[1] = optimizer
    for value, number in ((0.25, 0.25), (Tensor([0.125]), 0.125)):
        session.table[2] = value
        assert session.call("$set", 0, 0b101, "", 1, "lr", 2) is None
        assert optimizer.lr is rate and rate.item() == number
    session.table[2] = Tensor(0.75)  # of one element, without axes
    assert session.call("$set", 0, 0b101, "", 1, "lr", 2) is None and rate.item() == 0.75
    for wrong in (-1.0, math.nan, math.inf, "x", None, [0.5]):
        session.table[2] = wrong
        error = session.call("$set", 0, 0b101, "", 1, "lr", 2)
        assert error is not None and "SGD: lr: expected a number of at least 0" in str(error), wrong
        assert rate.item() == 0.75
    session.table[2] = weight = Tensor([[1.0]])
    session.table[3] = nn.Linear(1, 1, bias=False)
    assert session.call("$set", 0, 0b101, "", 3, "weight", 2) is None
    assert session.table[3].weight is weight


def test_what_depends_on_a_failure_fails_with_its_error(session: Session) -> None:
    make(session, 1, [1.0])
    error = session.call("Tensor.sum", 2, 1, "", 1, 5)
    assert error is not None
    session.fail(2, error)
    assert session.call("Tensor.add", 3, 0b11, "", 1, 2) == error
    assert session.call_packed("$list", 3, '[[{"$": 2}], {"d": []}]') == error
    for ask in (session.read, session.value, session.length, session.is_none, session.meta):
        assert ask(2) == error
    assert session.unpack(2, 10, 2) == error and session.read(11) == error


def jit_call(session: Session, body: Any = None) -> Any:
    """Call the captured function 2 with the Tensor 1; entry 3 is the result."""
    function = {"f": 0} if body is not None else None
    text = json.dumps([[{"$": 2}, function, {"$": 1}], {"d": []}])
    return session.call_packed("$jit_call", 3, text, (), [body])


def test_a_recorded_function_is_captured_and_its_results_are_dropped(session: Session) -> None:
    make(session, 1, [1.0, 2.0])
    session.call("$jit", 2, 0, "")
    operations = [("call", "Tensor.mul", 5, 0b11, "", 1, 1), ("call", "Tensor.sum", 6, 1, "", 5)]
    body = ([*operations, ("release", [5])], '{"t": [{"r": 6}]}')
    for i in range(4):
        assert jit_call(session, body if i < 2 else None) is None
        assert 6 not in session.table
        assert session.unpack(3, 10, 1) is None
        assert elements(session, 10) == [5]
    assert session.table[2].captured
    session.table[2].reset()
    assert "came without its body" in error_of(jit_call(session))["message"]


def test_a_failing_operation_of_a_function_is_the_error_of_the_call(session: Session) -> None:
    make(session, 1, [1.0])
    session.call("$jit", 2, 0, "")
    body = ([("call", "Tensor.sum", 5, 1, "", 1, 9)], '{"t": [{"r": 5}]}')
    assert error_of(jit_call(session, body))["type"] == "AxisError"


def test_a_step_is_compiled_from_a_callback(session: Session) -> None:
    make(session, 1, [2.0])
    session.table[1].requires_grad = True
    make(session, 2, [3.0])
    session.call_packed("nn.optim.SGD", 4, '[[[{"$": 1}], 0.5], {"d": []}]')

    def run() -> str:
        assert Tensor.training
        session.call("$argument", 5, 0, "", 0)
        session.call("Tensor.mul", 6, 0b11, "", 1, 5)
        session.call("Tensor.sum", 7, 1, "", 6)
        return '{"t": [{"r": 7}]}'

    text = '[[{"f": 0}, {"d": [["w", {"$": 1}]]}, {"$": 4}, {"$": 2}], {"d": []}]'
    assert session.call_packed("$compile_step", 8, text, (), [run]) is None
    assert session.call("$run_step", 9, 0b11, "", 8, 2) is None
    assert session.unpack(9, 10, 1) is None
    assert elements(session, 10) == [6] and elements(session, 1) == [0.5]  # 2 - 0.5 * 3


def test_functions_get_their_own_arguments_also_when_one_calls_another(session: Session) -> None:
    make(session, 1, [1.0, 2.0])
    inner = ([("call", "$argument", 6, 0, "", 0), ("call", "Tensor.mul", 7, 0b1, "", 6, 10)], '{"r": 7}')
    nested = '[[{"f": 0}, 0, 0, [[{"$": 5}]]], {"d": []}]'
    outer = (
        [
            ("call", "$argument", 5, 0, "", 0),
            ("call_packed", "$functions.vmap", 8, nested, [], [inner]),
            ("unpack", 8, 9, 1),
            ("call", "$argument", 11, 0, "", 0),
            ("call", "Tensor.add", 12, 0b11, "", 9, 11),
        ],
        '{"r": 12}',
    )
    session.table[2] = Tensor([[1.0, 2.0], [3.0, 4.0]])
    text = '[[{"f": 0}, 0, 0, [[{"$": 2}]]], {"d": []}]'
    assert session.call_packed("$functions.vmap", 3, text, (), [outer]) is None
    assert session.unpack(3, 20, 1) is None
    assert elements(session, 20) == [11, 22, 33, 44] and session.arguments == ()


@pytest.mark.parametrize("packed", [False, True])
def test_a_recorded_function_keeps_the_entries_that_it_uses(session: Session, packed: bool) -> None:
    make(session, 1, [1.0, 2.0])
    session.table[1].requires_grad = True
    make(session, 2, [10.0, 100.0])
    scale = weakref.ref(session.table[2])
    product = (
        ("call_packed", "Tensor.mul", 6, '[[{"$":5},{"$":2}],{"d":[]}]', [], [])
        if packed
        else ("call", "Tensor.mul", 6, 0b11, "", 5, 2)
    )
    hook = ([("call", "$argument", 5, 0, "", 0), product, ("release", [5])], '{"r": 6}')
    register = '[[{"$": 1}, {"f": 0}], {"d": []}]'
    assert session.call_packed("$functions.register_hook", 7, register, (), [hook]) is None
    session.release([2])  # as when the garbage of the other side is collected
    for i in (10, 20):
        session.call("Tensor.sum", i, 1, "", 1)
        assert session.call("Tensor.backward", 0, 1, "", i) is None
        assert sorted(session.table) == sorted({1, 7, *range(10, i + 1, 10)})
    assert session.table[1].grad.tolist() == [20, 200]
    session.call("$functions.remove_hook", 0, 1, "", 7)
    session.close()
    gc.collect()
    assert scale() is None


def test_it_says_where_it_runs() -> None:
    said = json.loads(describe())
    assert said["device"] in said["devices"]


# --- ONNX


def test_onnx_models_are_called_by_number(session: Session) -> None:
    assert session.call_packed("$onnx.Loading", 1, '[["relu.onnx"],{"d":[]}]') is None
    assert session.call_packed("$onnx.piece", 8, '[[{"b":0}],{"d":[]}]', [EXAMPLE]) is None
    for method, more in (("begin", "0,null"), ("feed", '0,{"$":8}')):
        assert session.call_waiting(f"$onnx.Loading.{method}", 9, f'[[{{"$":1}},{more}],{{"d":[]}}]') is None
    assert session.call_waiting("$onnx.Loading.finish", 2, '[[{"$":1}],{"d":[]}]') is None
    known = json.loads(session.meta(2, ["ops", "parameters"])[1:])
    assert known == {"ops": {"Relu": 1}, "parameters": []}
    make(session, 3, [-1.0, 2.0])
    for x in ({"$": 3}, {"t": [{"$": 3}]}, [-1, 2]):
        inputs = json.dumps([[{"$": 2}, {"d": [["x", x]]}], {"d": []}])
        assert session.call_packed("$onnx.Model.forward", 4, inputs) is None
        assert session.unpack(4, 5, 1) is None
        assert elements(session, 5) == [0.0, 2.0]
        assert session.call_waiting("$onnx.Model.forward", 4, inputs) is None
        assert session.unpack(4, 5, 1) is None
        assert elements(session, 5) == [0.0, 2.0]
    error = session.call_waiting("$onnx.Model.forward", 6, '[[{"$":2},{"d":[]}],{"d":[]}]')
    assert error_of(error)["message"].startswith("relu.onnx: forward: expected the inputs ['x']")
    assert error_of(session.call("$onnx._plain", 7, 0, ""))["type"] == "InternalError"
