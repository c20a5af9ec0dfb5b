"""``run_tools``: the model calls tools and is given their results, until it answers without a call."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from constrain.chat.answers.choice import read_choice
from constrain.chat.answers.choices import Calls
from constrain.chat.reading.reply import Reply
from constrain.chat.tools.definition import as_tools
from constrain.errors import ConstrainError, ToolError
from constrain.generation.asynchronous import acomplete
from constrain.generation.completion import HoldsAnswer
from constrain.generation.exclusions import refuse_together
from constrain.generation.generate import complete
from constrain.generation.options import takes_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from typing_extensions import Unpack

    from constrain.chat.prompt.messages import Prompt
    from constrain.chat.tools.calls import ToolCall
    from constrain.generation.completion import Completion
    from constrain.generation.options import ChatOptions
    from constrain.llama.lookup import AnyModel

MAX_STEPS = 10
"""Answers of the model in one run, unless ``max_steps`` is given; then the run ends without further calls."""


@dataclass(frozen=True, slots=True)
class ToolRun(HoldsAnswer):
    """The result of ``run_tools``.

    Attributes:
        reply: the last answer of the model.
        messages: the whole conversation, with calls, results and the last answer, as messages in OpenAI's form. Append
            a question, and it is the next prompt.
        completions: a ``Completion`` for each answer of the model, in order.
    """

    reply: Reply
    messages: list[dict[str, Any]] = field(repr=False)
    completions: tuple[Completion, ...] = field(repr=False)
    _cure: ClassVar[str] = "the last answer is at .reply, and its content at .value"

    @property
    def value(self) -> Any:
        """The content of the last answer: the value of ``schema``, or text."""
        return self.reply.content


@takes_options
def run_tools(
    model: AnyModel,
    prompt: Prompt,
    *,
    schema: Any = None,
    max_steps: int = MAX_STEPS,
    context: Any = None,
    show_error: Callable[[ToolCall, Exception], str] | None = None,
    **options: Unpack[ChatOptions],
) -> ToolRun:
    """Has a model answer a prompt with tools: runs the calls and shows the model their results until it needs none.

    Args:
        model: as for ``complete``.
        prompt: as for ``complete``.
        schema: shape of an answer without calls, as for ``complete``.
        options: options of ``complete``, with ``tools``, each of which must have a function. ``tool_choice`` applies to
            the first answer; after that the model may choose, among the tools that a list of ``tool_choice`` names, or
            else among all.
        max_steps: the most answers of the model, 1 or more (10). The last answer cannot call tools, so the run ends
            with content; with ``max_steps=1``, ``tool_choice`` decides.
        context: value for tools that take a context.
        show_error: function that returns the text which the model reads in place of a result when a tool raises an
            exception; ``Error: ...`` by default. An exception that ``show_error`` raises ends the run.

    Returns a ``ToolRun``. Raises the errors of ``complete``, and ``ToolError`` for a tool without a function, or with
    an ``async`` one while an event loop runs in this thread (use ``arun_tools`` then).

    >>> def double(number: int) -> int:
    ...     return 2 * number
    >>> run = run_tools(None, "What is 7 doubled?", tools=[double], tool_choice="required", max_steps=2, max_tokens=60)
    >>> run.messages[1]["tool_calls"][0]["function"]["name"], run.messages[2]["role"]
    ('double', 'tool')
    """
    state = ToolSteps(prompt, options, max_steps)
    while True:
        completion = complete(model, state.messages, schema=schema, **state.step())
        for call in state.record_answer(completion):
            state.record_result(call, run_call(call, context=context, show_error=show_error))
        if state.is_done:
            return state.outcome()


@takes_options
async def arun_tools(
    model: AnyModel,
    prompt: Prompt,
    *,
    schema: Any = None,
    max_steps: int = MAX_STEPS,
    context: Any = None,
    show_error: Callable[[ToolCall, Exception], str] | None = None,
    **options: Unpack[ChatOptions],
) -> ToolRun:
    """``run_tools`` for asynchronous code; the calls of one answer run concurrently."""
    state = ToolSteps(prompt, options, max_steps)

    async def run(call: ToolCall) -> str:
        try:
            return result_text(await call.acall(context=context))
        except ToolError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a tool raises is shown to the model
            return _describe_error(call, error, show_error)

    while True:
        completion = await acomplete(model, state.messages, schema=schema, **state.step())
        calls = state.record_answer(completion)
        for call, result in zip(calls, await asyncio.gather(*map(run, calls)), strict=True):
            state.record_result(call, result)
        if state.is_done:
            return state.outcome()


def run_call(
    call: ToolCall, *, context: Any = None, show_error: Callable[[ToolCall, Exception], str] | None = None
) -> str:
    """Runs a call and returns the text of its result, or of its error. Raises ``ToolError`` for wrong tools."""
    try:
        return result_text(call.call(context=context))
    except ToolError:
        raise
    except Exception as error:  # noqa: BLE001 - the model reads every error of a tool
        return _describe_error(call, error, show_error)


def result_text(result: Any) -> str:
    """Returns a tool's result as the model reads it: a text unchanged, another value as JSON (or its ``str``)."""
    if isinstance(result, str):
        return result
    from pydantic_core import to_json

    return to_json(result, fallback=str).decode()


class ToolSteps:
    """The state of a run between two steps: the conversation so far, and the options of the next answer.

    Arguments are those of ``run_tools``. Raises ``ValueError`` and ``ToolError``.

    Attributes:
        messages: the conversation, in OpenAI's form.
        is_done: whether the latest answer ends the run.
    """

    def __init__(self, prompt: Prompt, options: ChatOptions, max_steps: int) -> None:
        tools = as_tools(options.get("tools") or ())
        refuse_together(run_tools=True, tools=bool(tools))
        for tool in tools:
            if tool.function is None:
                raise ToolError(f"tool {tool.name!r} has no function to run; give it one, or use complete")
        if max_steps < 1:
            raise ValueError(f"max_steps is {max_steps}; it must be 1 or more")
        start = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        self.messages: list[dict[str, Any]] = [dict(message) for message in start]
        self.is_done = False
        self._options: ChatOptions = {**options, "tools": tools}
        self._choice = read_choice(options.get("tool_choice"), tools)
        self._left = max_steps
        self._completions: list[Completion] = []

    def step(self) -> ChatOptions:
        """Returns the options for the next answer."""
        if self._completions:
            self._options.pop("prefix", None)  # it begins the first answer only
        choice = self._choice
        if self._left == 1 and (self._completions or choice.calls is Calls.AUTO):
            return {**self._options, "tool_choice": "none"}
        if not self._completions:
            return self._options
        if choice.allowed is None or choice.single:
            return {**self._options, "tool_choice": "auto"}
        allowed = {"type": "allowed_tools", "mode": "auto", "tools": choice.allowed}
        return {**self._options, "tool_choice": allowed}

    def record_answer(self, completion: Completion) -> tuple[ToolCall, ...]:
        """Records an answer and returns the calls to run."""
        self._left -= 1
        self._completions.append(completion)
        reply = self.reply
        self.messages.append(reply.message())
        self.is_done = not reply.calls or self._left == 0
        return reply.calls

    def record_result(self, call: ToolCall, result: str) -> None:
        """Records the result of a call; lone surrogates, as in names of files, are escaped."""
        content = result.encode(errors="backslashreplace").decode()
        self.messages.append({"role": "tool", "tool_call_id": call.id, "content": content})

    @property
    def reply(self) -> Reply:
        """The latest answer."""
        reply = self._completions[-1].value
        assert isinstance(reply, Reply)
        return reply

    def outcome(self) -> ToolRun:
        """Returns the result of the run."""
        return ToolRun(self.reply, self.messages, tuple(self._completions))


def _describe_error(call: ToolCall, error: Exception, show: Callable[[ToolCall, Exception], str] | None) -> str:
    if show is not None:
        return show(call, error)
    text = error.message if isinstance(error, ConstrainError) else str(error)
    return f"Error: {type(error).__name__}: {text}"
