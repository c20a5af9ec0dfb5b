"""A conversation: its messages, its schema and tools, and the answers of the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from constrain.chat.reading.events import TextDelta
from constrain.engine.compiling import compile_any
from constrain.generation.completion import Finished
from constrain.generation.generate import stream
from constrain.generation.options import compile_options, options_beside
from constrain.generation.tool_loop import MAX_STEPS, ToolSteps, run_call

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from constrain.chat.reading.events import StreamEvent
    from constrain.chat.tools.calls import ToolCall
    from constrain.chat.tools.kinds import FunctionTool
    from constrain.generation.completion import Completion
    from constrain.generation.options import ChatOptions
    from constrain.language.source import Source
    from constrain.llama.model import Model
    from constrain.partial.reader import FieldEvent

REFUSED = "Error: the user does not allow this call."
"""Result that the model reads for a call that was not allowed."""


@dataclass(frozen=True, slots=True)
class Result:
    """An event of an answer: the result of a call, as the model reads it."""

    call: ToolCall
    text: str


Event: TypeAlias = "StreamEvent | FieldEvent | Result | Finished"
Messages: TypeAlias = list[dict[str, Any]]
"""Messages in OpenAI's form."""


class Talk:
    """A conversation with a model.

    Args:
        model: the model.
        options: options of ``stream`` for every answer.
        schema: shape of the answers; ``None`` for free text.
        system: text of the system message; ``""`` for none.
        find_tools: function that returns the tools that the model may call now.
        allow: function that says whether a call may run.

    Attributes:
        messages: the conversation so far, in OpenAI's form.
        system, schema: text of the system message, and shape of the answers; both may be replaced between two answers.
        must_call: name of the tool that the next answer calls; ``"required"`` for any, ``None`` for a free choice.
    """

    def __init__(
        self,
        model: Model,
        options: ChatOptions,
        *,
        schema: str | Source | None,
        system: str,
        find_tools: Callable[[], list[FunctionTool]],
        allow: Callable[[ToolCall], bool],
    ) -> None:
        self.messages: Messages = []
        self.schema = schema
        self.system = system
        self.must_call: str | None = None
        self._told: set[str] = set()
        self._model = model
        self._options = options
        self._find_tools = find_tools
        self._allow = allow

    def set_schema(self, schema: str | Source) -> None:
        """Sets the shape of the answers. Raises the errors of ``compile`` for a schema that cannot be used."""
        policies = compile_options(options_beside(self._options, schema), schema)
        compile_any(schema, self._model.vocabulary, close_objects=True, **policies)
        self.schema = schema

    def untold(self, completion: Completion) -> list[str]:
        """Returns the notes on the schema of an answer that no earlier answer had."""
        notes = () if completion.report is None else completion.report.warnings
        untold = [note for note in notes if note not in self._told]
        self._told.update(untold)
        return untold

    def ask(self, question: str, is_stopped: Callable[[], bool]) -> Iterator[Event]:
        """Yields the events of an answer, and of further ones as long as the model calls tools.

        The conversation grows when the answer is complete. If ``is_stopped`` returns true between two events, the
        answer ends there, and its text so far counts; without any text, the question is forgotten. Raises the errors of
        ``stream``; then the conversation is as before.
        """
        start = [{"role": "system", "content": self.system}] if self.system else []
        before = [*start, *self.messages, {"role": "user", "content": question}]
        options = options_beside(self._options, self.schema)
        tools = self._find_tools()
        if tools:
            choice = "auto" if self.must_call is None else self.must_call
            given: ChatOptions = {**options, "tools": tools, "tool_choice": choice}
            messages = yield from self._ask_with_tools(before, given, is_stopped)
            if len(messages) >= len(before):  # the question was not forgotten
                self.must_call = None
        else:
            messages = yield from self._step(before, options, is_stopped)
        self.messages = messages[len(start) :]

    def _step(
        self, messages: Messages, options: ChatOptions, is_stopped: Callable[[], bool]
    ) -> Generator[Event, None, Messages]:
        """Yields the events of one answer without tools; returns the messages afterwards."""
        text = ""
        for event in stream(self._model, messages, schema=self.schema, partial=False, **options):
            yield event
            if isinstance(event, Finished):
                return [*messages, {"role": "assistant", "content": event.completion.text}]
            if isinstance(event, TextDelta):
                text += event.text
            if is_stopped():
                break
        return _stopped(messages, text)

    def _ask_with_tools(
        self, before: Messages, options: ChatOptions, is_stopped: Callable[[], bool]
    ) -> Generator[Event, None, Messages]:
        """Yields the events of answers with tools, and the results of calls; returns the messages afterwards."""
        steps = ToolSteps(before, options, MAX_STEPS)
        while not steps.is_done:
            text = ""
            for event in stream(self._model, steps.messages, schema=self.schema, partial=False, **steps.step()):
                yield event
                if isinstance(event, TextDelta):
                    text += event.text
                if isinstance(event, Finished):
                    for call in steps.record_answer(event.completion):
                        if is_stopped():
                            return _stopped(steps.messages, "")
                        result = self._run(call)
                        steps.record_result(call, result)
                        yield Result(call, result)
                elif is_stopped():
                    return _stopped(steps.messages, text)
            if is_stopped() and not steps.is_done:
                return _stopped(steps.messages, "")
        return steps.messages

    def _run(self, call: ToolCall) -> str:
        return run_call(call) if self._allow(call) else REFUSED


def _stopped(messages: Messages, text: str) -> Messages:
    """Returns a conversation whose last answer was stopped: with its text, or else without its question."""
    if text:
        return [*messages, {"role": "assistant", "content": text}]
    last = max(index for index, message in enumerate(messages) if message["role"] == "user")
    return messages[:last]
