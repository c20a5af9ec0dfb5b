"""``run_tools`` and ``arun_tools`` on a model whose answers are written down."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import constrain
from constrain import ToolError, tool
from constrain.chat.prompt.messages import check_messages
from constrain.chat.tools.calls import CustomCall, FunctionCall, ToolCall
from constrain.chat.tools.definition import as_tools
from constrain.generation import tool_loop as loop
from constrain.generation.completion import Completion, Timings, Usage
from constrain.generation.tool_loop import ToolRun, result_text
from constrain.tools import CustomTool, Reply, ToolContext, arun_tools, run_tools
from tests.support import for_each


class Script:
    """Answers each step with what is written for it, and keeps what it was asked. Each call is (name, text)."""

    def __init__(self, *steps: str | list[tuple[str, str]]) -> None:
        self.steps = list(steps)
        self.asked: list[list[dict[str, Any]]] = []
        self.options: list[dict[str, Any]] = []

    def complete(self, _: object, messages: list[dict[str, Any]], **options: Any) -> Completion:
        check_messages(messages)
        self.asked.append(list(messages))
        self.options.append(options)
        step = self.steps[len(self.asked) - 1]
        reply = Reply(content=step, text=step) if isinstance(step, str) else Reply(self._calls(step, options["tools"]))
        return Completion(reply, reply.text, (), Usage(0, 0, 0), Timings(0, 0, 0, 0), "stop", None)

    def _calls(self, step: list[tuple[str, str]], tools: Any) -> tuple[ToolCall, ...]:
        by_name = {each.name: each for each in as_tools(tools)}
        calls: list[ToolCall] = []
        for name, text in step:
            called, made = by_name[name], f"id{len(self.asked)}.{len(calls)}"
            if isinstance(called, CustomTool):
                calls.append(CustomCall(made, called, text))
            else:
                calls.append(FunctionCall(made, called, called.read(text)))
        return tuple(calls)

    @property
    def choices(self) -> list[Any]:
        return [options.get("tool_choice") for options in self.options]


@pytest.fixture(params=["sync", "async"])
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs tools over a script, in both ways."""

    def in_order(steps: list[Any], prompt: Any = "Go", **options: Any) -> tuple[ToolRun, Script]:
        script = Script(*steps)
        monkeypatch.setattr(loop, "complete", script.complete)

        async def acomplete(*args: Any, **given: Any) -> Completion:
            return script.complete(*args, **given)

        monkeypatch.setattr(loop, "acomplete", acomplete)
        if request.param == "sync":
            return run_tools(None, prompt, **options), script
        return asyncio.run(asyncio.wait_for(arun_tools(None, prompt, **options), 60)), script

    return in_order


def double(number: int) -> int:
    return 2 * number


def fail(reason: str) -> None:
    raise LookupError(reason)


def contents(run: ToolRun) -> list[Any]:
    return [message["content"] for message in run.messages]


DOUBLE = ("double", '{"number": 4}')

# Results


def test_results_are_shown_until_there_is_an_answer_without_calls(run: Any) -> None:
    done, script = run([[DOUBLE, DOUBLE], [("double", '{"number": 8}')], "It is 16."], tools=[double])
    assert contents(done) == ["Go", None, "8", "8", None, "16", "It is 16."]
    assert [message["role"] for message in done.messages[:4]] == ["user", "assistant", "tool", "tool"]
    assert [message["tool_call_id"] for message in done.messages[2:4]] == ["id1.0", "id1.1"]
    assert (done.value, done.reply.content, len(done.completions)) == ("It is 16.", "It is 16.", 3)
    assert script.asked[2] == done.messages[:-1]
    check_messages(done.messages)


def test_the_conversation_goes_on_where_it_was(run: Any) -> None:
    said = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Go"}]
    done, _ = run([[DOUBLE], "8"], said, tools=[double])
    assert done.messages[:2] == said
    assert len(said) == 2
    more, _ = run(["Bye."], [*done.messages, {"role": "user", "content": "Bye"}], tools=[double])
    assert more.messages[:-2] == done.messages


def test_custom_tools_are_given_their_text(run: Any) -> None:
    done, _ = run([[("shout", "hello")], "."], tools=[CustomTool("shout", function=str.upper)])
    assert contents(done)[2] == "HELLO"


RESULTS: list[tuple[Any, str]] = [
    ("as it is", "as it is"),
    (None, "null"),
    ({"é": [1, 2.5]}, '{"é":[1,2.5]}'),
    (b"ab", '"ab"'),
    (Timings(1, 2, 3, 4), '{"compile":1,"queue":2,"prompt":3,"generation":4}'),
    (slice(1, 2), '"slice(1, 2, None)"'),
]


@for_each("result, text", RESULTS)
def test_results_that_are_no_text_are_shown_as_json(result: Any, text: str) -> None:
    assert result_text(result) == text


def test_results_that_no_text_can_hold_are_escaped(run: Any) -> None:
    def names() -> str:
        return "a\udc80b"

    done, _ = run([[("names", "{}")], "."], tools=[names])
    assert contents(done)[2] == "a\\udc80b"


# Errors


def test_errors_of_tools_are_shown_to_the_model(run: Any) -> None:
    done, _ = run([[("fail", '{"reason": "no such city"}'), DOUBLE], "Sorry."], tools=[fail, double])
    assert contents(done)[2:] == ["Error: LookupError: no such city", "8", "Sorry."]


def test_results_that_are_no_json_are_errors(run: Any) -> None:
    def raw() -> bytes:
        return b"\xff"

    done, _ = run([[("raw", "{}")], "."], tools=[raw])
    assert "invalid utf-8" in contents(done)[2]


def test_errors_are_shown_as_the_caller_says(run: Any) -> None:
    done, _ = run(
        [[("fail", '{"reason": "x"}')], "."], tools=[fail], show_error=lambda call, error: f"{call!r}: {error!r}"
    )
    assert contents(done)[2] == "fail(reason='x'): LookupError('x')"


def test_what_showing_an_error_raises_ends_the_run(run: Any) -> None:
    def show(_: ToolCall, error: Exception) -> str:
        raise error

    with pytest.raises(LookupError, match="no such city"):
        run([[("fail", '{"reason": "no such city"}')]], tools=[fail], show_error=show)


def test_an_interruption_ends_the_run(run: Any) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run([[("interrupt", "{}")]], tools=[interrupt])


def test_tools_without_a_function_are_refused_before_the_first_step(run: Any) -> None:
    declared = {"type": "function", "name": "nothing"}
    for missing in (declared, CustomTool("nothing")):
        with pytest.raises(ToolError, match="'nothing' has no function"):
            run([], tools=[double, missing])


@pytest.mark.parametrize(
    ("options", "message"), [({}, "needs tools"), ({"tools": [double], "max_steps": 0}, "max_steps")]
)
def test_a_run_needs_tools_and_steps(run: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run([], **options)


# Steps


def test_the_last_step_cannot_call(run: Any) -> None:
    done, script = run([[DOUBLE], [DOUBLE], "Enough."], tools=[double], max_steps=3)
    assert script.choices == [None, "auto", "none"]
    assert done.value == "Enough."


CHOICES: list[tuple[Any, int, list[Any]]] = [
    ("required", 3, ["required", "auto", "none"]),
    ("double", 3, ["double", "auto", "none"]),
    (double, 2, [double, "none"]),
    (["double"], 3, [["double"], {"type": "allowed_tools", "mode": "auto", "tools": ("double",)}, "none"]),
    ("auto", 1, ["none"]),
    (None, 1, ["none"]),
    ({"type": "allowed_tools", "tools": ["double"]}, 1, ["none"]),
]


@pytest.mark.parametrize(("choice", "steps", "seen"), CHOICES)
def test_a_choice_is_for_the_first_answer_and_what_it_allows_for_all(
    run: Any, choice: Any, steps: int, seen: list[Any]
) -> None:
    script = [[DOUBLE]] * (steps - 1) + ["."]
    assert run(script, tools=[double, fail], tool_choice=choice, max_steps=steps)[1].choices == seen


def test_a_single_step_may_be_a_call_that_was_asked_for(run: Any) -> None:
    done, script = run([[DOUBLE]], tools=[double], tool_choice="required", max_steps=1)
    assert script.choices == ["required"]
    assert (contents(done), done.value) == (["Go", None, "8"], None)


def test_other_options_are_for_all_steps(run: Any) -> None:
    _, script = run([[DOUBLE], "."], tools=[double], schema=str, max_tokens=9, seed=3)
    for options in script.options:
        assert (options["schema"], options["max_tokens"], options["seed"]) == (str, 9, 3)


# Context and asynchronous tools


def test_tools_that_take_one_are_given_the_context(run: Any) -> None:
    def read_file(ctx: ToolContext[dict[str, str]], path: str, directory: str | None = None) -> str:
        return ctx[f"{directory}/{path}"]

    declared = tool(read_file)
    assert "ctx" not in declared.parameters["properties"]
    assert declared.parameters["required"] == ["path"]
    files = {"None/a": "first", "b/a": "second"}
    calls = [("read_file", '{"path": "a"}'), ("read_file", '{"path": "a", "directory": "b"}'), DOUBLE]
    done, _ = run([calls, "."], tools=[declared, double], context=files)
    assert contents(done)[2:5] == ["first", "second", "8"]


def test_async_tools_run_in_both_ways(run: Any) -> None:
    async def later(number: int) -> int:
        await asyncio.sleep(0)
        return number + 1

    assert contents(run([[("later", '{"number": 4}')], "."], tools=[later])[0])[2] == "5"


def test_async_tools_are_refused_where_run_tools_blocks_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    async def later() -> None: ...

    monkeypatch.setattr(loop, "complete", Script([("later", "{}")]).complete)

    async def inside() -> None:
        run_tools(None, "Go", tools=[later])

    with pytest.raises(ToolError, match="event loop"):
        asyncio.run(inside())


@pytest.mark.parametrize("kind", ["async", "threads"])
def test_the_calls_of_one_answer_run_side_by_side(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2, timeout=30)
    met: list[str] = []

    def in_thread(name: str) -> str:
        both.wait()
        return name

    async def in_loop(name: str) -> str:
        met.append(name)
        while len(met) < 2:
            await asyncio.sleep(0)
        return name

    used = tool(in_loop if kind == "async" else in_thread, name="meet")
    script = Script([("meet", '{"name": "one"}'), ("meet", '{"name": "two"}')], "Met.")

    async def acomplete(*args: Any, **options: Any) -> Completion:
        return script.complete(*args, **options)

    monkeypatch.setattr(loop, "acomplete", acomplete)
    done = asyncio.run(asyncio.wait_for(arun_tools(None, "Go", tools=[used]), 60))
    assert contents(done) == ["Go", None, "one", "two", "Met."]


def test_what_is_printed_of_a_run_is_its_reply(run: Any) -> None:
    assert repr(run(["Hi."], tools=[double])[0]) == "ToolRun(reply=Reply(content='Hi.'))"
    assert constrain.tools.ToolRun is ToolRun
