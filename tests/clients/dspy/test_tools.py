"""Tools: native calls, ReAct, and plain models."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from typing import TYPE_CHECKING, Any, Literal

import dspy
import pytest
from dspy.utils.exceptions import AdapterParseError, LMError

if TYPE_CHECKING:
    from collections.abc import Callable


def weather(city: Literal["Oslo", "Rome"], days: int) -> str:
    """Tells the weather of the next days."""
    return f"sun in {city} for {days} day(s)"


class Ask(dspy.Signature):
    """Call a tool."""

    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    calls: dspy.ToolCalls = dspy.OutputField()


def test_calls_match_the_function(connect: Callable[..., dspy.LM]) -> None:
    with dspy.context(lm=connect(tool_choice="required"), adapter=dspy.ChatAdapter(use_native_function_calling=True)):
        found = dspy.Predict(Ask)(question="What will the weather be in Rome?", tools=[dspy.Tool(weather)])
    assert found.calls.tool_calls
    for call in found.calls.tool_calls:
        assert call.name == "weather"
        assert call.args["city"] in ("Oslo", "Rome")
        assert isinstance(call.args["days"], int)


def test_calls_are_executed_in_a_loop(connect: Callable[..., dspy.LM]) -> None:
    lm = connect(parallel_tool_calls=False)
    with dspy.context(lm=lm, adapter=dspy.JSONAdapter()):
        found = dspy.ReActV2("question -> is_sunny: bool", tools=[weather], max_iters=2)(
            question="Is it sunny in Rome?"
        )
    assert isinstance(found.is_sunny, bool)


def test_react_gets_json_of_any_form(lm: dspy.LM) -> None:
    """The arguments are an open dictionary, for which DSPy asks for ``json_object``: names of tools may be wrong."""
    with contextlib.suppress(AdapterParseError):
        dspy.ReAct("question -> is_sunny: bool", tools=[weather], max_iters=1)(question="Is it sunny in Rome?")
    assert lm.history
    for entry in lm.history:
        [text] = entry["outputs"]
        assert isinstance(json.loads(text), dict)


def test_an_output_is_streamed(lm: dspy.LM) -> None:
    """As DSPy cuts it out of the JSON: with its quotation marks."""
    listener = dspy.streaming.StreamListener(signature_field_name="words")
    program = dspy.streamify(dspy.Predict("question -> words: str"), stream_listeners=[listener])

    async def read() -> list[Any]:
        return [part async for part in program(question="A colour?")]

    *parts, last = asyncio.run(read())
    assert last.words in "".join(part.chunk for part in parts)
    assert lm.history


def test_a_model_is_asked_directly(lm: dspy.LM) -> None:
    [text] = lm("Tell me about Oslo.", max_tokens=8)
    assert text


def test_a_model_is_asked_for_several_answers(connect: Callable[..., dspy.LM]) -> None:
    assert len(connect(n=2, temperature=1)("A number?", max_tokens=4)) == 2


def test_an_unknown_model_is_not_found(provider: str) -> None:
    with pytest.raises(LMError, match="no-such-model"):
        dspy.LM(f"{provider}/no-such-model", cache=False, num_retries=0)("Hello")


def test_texts_are_embedded() -> None:
    """By LiteLLM, which DSPy uses for all but chats."""
    embed = dspy.Embedder(
        f"openai/{os.environ['CONSTRAIN_MODEL']}",
        api_base=os.environ["OPENAI_BASE_URL"],
        api_key=os.environ["OPENAI_API_KEY"],
        caching=False,
    )
    assert embed(["a cat", "Oslo"]).shape[0] == 2
