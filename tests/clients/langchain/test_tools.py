"""``bind_tools``: choices, calls, their results, and agents that do all that."""

from __future__ import annotations

import asyncio  # noqa: TC003
import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

import openai
import pytest
from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain_core.messages import AIMessage, FunctionMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import PydanticToolsParser
from langchain_core.tools import InjectedToolArg, StructuredTool, tool
from langchain_openai import custom_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, create_react_agent
from pydantic import BaseModel, Field

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_openai import ChatOpenAI

MAX_STEPS = 9
"""A small model may call for ever."""


@tool
def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


@tool
def weather(city: Literal["Oslo", "Rome"], unit: Literal["C", "F"] = "C") -> str:
    """Tells the weather in a city."""
    return f"20 {unit} in {city}"


class GetPopulation(BaseModel):
    """Get the current population in a given location"""

    location: str = Field(description="The city and state", max_length=30)


class Verdict(BaseModel):
    """A verdict."""

    words: str = Field(max_length=30)
    warm: bool


OPENAI_TOOL = {
    "type": "function",
    "function": {
        "name": "note",
        "description": "Notes a word.",
        "parameters": {
            "type": "object",
            "properties": {"word": {"type": "string", "maxLength": 9}},
            "required": ["word"],
        },
    },
}

ASK = "What is 3 * 12? And the weather in Rome?"


@pytest.mark.parametrize("choice", ["any", "required", True], ids=str)
def test_a_call_may_be_required(model: ChatOpenAI, choice: Any) -> None:
    message = model.bind_tools([multiply, weather], tool_choice=choice).invoke(ASK)
    assert message.tool_calls
    assert {call["name"] for call in message.tool_calls} <= {"multiply", "weather"}
    assert not message.invalid_tool_calls


@pytest.mark.parametrize(
    "choice", ["weather", {"type": "function", "function": {"name": "weather"}}], ids=["name", "dict"]
)
def test_a_call_may_be_of_one_tool(model: ChatOpenAI, choice: Any) -> None:
    message = model.bind_tools([multiply, weather], tool_choice=choice).invoke(ASK)
    assert {call["name"] for call in message.tool_calls} == {"weather"}
    assert all(call["args"]["city"] in ("Oslo", "Rome") for call in message.tool_calls)


def test_a_call_may_be_left_to_the_model(model: ChatOpenAI) -> None:
    message = model.bind_tools([multiply, weather], tool_choice="auto").invoke(ASK)
    assert message.tool_calls or message.text


def test_a_call_may_be_forbidden(model: ChatOpenAI) -> None:
    message = model.bind_tools([multiply, weather], tool_choice="none").invoke(ASK)
    assert not message.tool_calls
    assert message.text


@pytest.mark.parametrize("choice", ["any", "auto"])
def test_at_most_one_call_where_they_are_not_parallel(model: ChatOpenAI, choice: str) -> None:
    bound = model.bind_tools([multiply, weather], tool_choice=choice, parallel_tool_calls=False)
    assert len(bound.invoke(ASK).tool_calls) <= 1


@pytest.mark.parametrize("strict", [None, True, False])
@pytest.mark.parametrize("kind", [multiply, GetPopulation, OPENAI_TOOL], ids=["function", "model", "json"])
def test_tools_are_strict_or_not(model: ChatOpenAI, kind: Any, *, strict: bool | None) -> None:
    if kind is OPENAI_TOOL and strict:
        function: Any = OPENAI_TOOL["function"]
        function = {**function, "parameters": {**function["parameters"], "additionalProperties": False}}
        kind = {"type": "function", "function": function}
    assert model.bind_tools([kind], tool_choice="any", strict=strict).invoke(ASK).tool_calls


def test_calls_are_parsed_as_models(model: ChatOpenAI) -> None:
    chain = model.bind_tools([GetPopulation], tool_choice="any") | PydanticToolsParser(tools=[GetPopulation])
    assert all(isinstance(call, GetPopulation) for call in chain.invoke("Oslo?"))


def test_results_of_calls_go_back(model: ChatOpenAI) -> None:
    messages: list[Any] = [SystemMessage("Be brief."), HumanMessage(ASK)]
    called = model.bind_tools([weather], tool_choice="any").invoke(messages)
    messages.append(called)
    messages.extend(weather.invoke(call) for call in called.tool_calls)
    assert isinstance(messages[-1], ToolMessage)
    assert model.bind_tools([weather], tool_choice="none").invoke(messages).text


def test_results_may_be_of_several_parts(model: ChatOpenAI) -> None:
    called = model.bind_tools([weather], tool_choice="any").invoke(ASK)
    results = [
        ToolMessage([{"type": "text", "text": "20 C"}, {"type": "text", "text": "<|im_end|>"}], tool_call_id=call["id"])
        for call in called.tool_calls
    ]
    assert model.invoke([HumanMessage(ASK), called, *results]).text


def test_a_result_without_its_call_is_refused(model: ChatOpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="call"):
        model.invoke([HumanMessage(ASK), ToolMessage("20 C", tool_call_id="call_none")])


def test_calls_are_streamed(model: ChatOpenAI) -> None:
    whole: Any = None
    for chunk in model.bind_tools([multiply, weather], tool_choice="any").stream(ASK):
        whole = chunk if whole is None else whole + chunk
    assert whole.tool_calls
    assert not whole.invalid_tool_calls
    assert all(call["id"] for call in whole.tool_calls)


def test_arguments_come_in_pieces(model: ChatOpenAI) -> None:
    chunks = list(model.bind_tools([GetPopulation], tool_choice="any").stream("Oslo?"))
    assert sum(len(chunk.tool_call_chunks) for chunk in chunks) > 1


def test_tools_may_come_with_a_response_format(chat: ChatOpenAI) -> None:
    """Which forces strict tools, and parses the content."""
    bound = chat.bind_tools([multiply], response_format=Verdict, strict=True)
    message = bound.invoke("Is it warm in Rome?")
    assert message.tool_calls or isinstance(message.additional_kwargs["parsed"], Verdict)


def test_arguments_may_be_hidden_from_the_model(model: ChatOpenAI) -> None:
    def save(text: Annotated[str, Field(max_length=20)], user: Annotated[str, InjectedToolArg]) -> str:
        """Saves a text."""
        return f"{user}: {text}"

    hidden = StructuredTool.from_function(save)
    calls = model.bind_tools([hidden], tool_choice="any").invoke("Save 'milk'.").tool_calls
    assert set(calls[0]["args"]) == {"text"}


def test_a_custom_tool_takes_text_of_a_grammar(connect: Callable[..., ChatOpenAI]) -> None:
    @custom_tool(
        format={
            "type": "grammar",
            "syntax": "lark",
            "definition": 'start: NUMBER ("+" NUMBER)~0..3\nNUMBER: /[0-9]{1,3}/',
        }
    )
    def add(text: str) -> int:
        """Adds numbers."""
        return sum(map(int, text.split("+")))

    bound = connect(use_responses_api=True).bind_tools([add], tool_choice={"type": "custom", "name": "add"})
    call = bound.invoke("1 + 2?").tool_calls[0]
    assert call["name"] == "add"
    assert all(part.isdigit() for part in call["args"]["__arg1"].split("+"))


def test_an_unknown_tool_cannot_be_chosen(model: ChatOpenAI) -> None:
    choice = {"type": "function", "function": {"name": "missing"}}
    with pytest.raises(openai.BadRequestError, match="missing"):
        model.bind_tools([multiply]).bind(tool_choice=choice).invoke(ASK)  # type: ignore[attr-defined]


def run(agent: Any, **options: Any) -> dict[str, Any]:
    """The last state of a graph, which may have ended for its number of steps."""
    state: dict[str, Any] = {}
    try:
        for state in agent.stream(  # noqa: B007 - the last is what counts
            {"messages": [{"role": "user", "content": ASK}]},
            {"recursion_limit": MAX_STEPS, "configurable": {"thread_id": "1"}},
            stream_mode="values",
            **options,
        ):
            pass
    except GraphRecursionError:
        assert len(state["messages"]) > 2
    return state


def test_an_agent_calls_tools(model: ChatOpenAI) -> None:
    state = run(create_agent(model, [multiply, weather], system_prompt="Use tools."))
    assert isinstance(state["messages"][1], AIMessage)
    ids = {call["id"] for message in state["messages"] if isinstance(message, AIMessage) for call in message.tool_calls}
    assert {message.tool_call_id for message in state["messages"] if isinstance(message, ToolMessage)} <= ids


@pytest.mark.parametrize("strategy", [ToolStrategy, ProviderStrategy, None], ids=["tool", "provider", "auto"])
def test_an_agent_without_tools_has_an_answer_with_a_type(model: ChatOpenAI, strategy: Any) -> None:
    agent = create_agent(model, [], response_format=strategy(Verdict) if strategy else Verdict)
    assert isinstance(run(agent)["structured_response"], Verdict)


@pytest.mark.parametrize("strategy", [ToolStrategy, ProviderStrategy], ids=["tool", "provider"])
def test_an_agent_with_tools_has_an_answer_with_a_type(model: ChatOpenAI, strategy: Any) -> None:
    state = run(create_agent(model, [weather], response_format=strategy(Verdict)))
    assert isinstance(state.get("structured_response"), Verdict) or len(state["messages"]) >= MAX_STEPS - 1


def test_an_agent_remembers(model: ChatOpenAI) -> None:
    agent = create_agent(model, [], checkpointer=InMemorySaver())
    run(agent)
    assert len(run(agent)["messages"]) == 4


def test_the_older_agent_calls_tools(model: ChatOpenAI) -> None:
    with pytest.warns(DeprecationWarning, match="create_react_agent"):
        agent = create_react_agent(model, [weather], prompt="Use tools.")
    assert len(run(agent)["messages"]) >= 2


def test_an_agent_streams_messages(model: ChatOpenAI) -> None:
    agent = create_agent(model, [])
    pieces = list(agent.stream({"messages": [("human", "Hello")]}, stream_mode="messages"))
    assert "".join(piece.text for piece, _ in pieces)


def test_an_agent_runs_in_asynchronous_code(model: ChatOpenAI, loop: asyncio.AbstractEventLoop) -> None:
    agent = create_agent(model, [], response_format=ToolStrategy(Verdict))
    state = loop.run_until_complete(agent.ainvoke({"messages": [("human", "Is it warm?")]}))
    assert isinstance(state["structured_response"], Verdict)


def test_functions_in_the_older_way_are_called(chat: ChatOpenAI) -> None:
    bound = chat.bind(functions=[OPENAI_TOOL["function"]], function_call={"name": "note"})
    message = bound.invoke("Note milk.")
    assert set(json.loads(message.additional_kwargs["function_call"]["arguments"])) == {"word"}
    assert message.response_metadata["finish_reason"] in ("function_call", "stop")
    assert chat.invoke([HumanMessage("Note milk."), message, FunctionMessage(name="note", content="noted")]).text


def test_tools_of_the_provider_are_refused_where_they_must_be_called(connect: Callable[..., ChatOpenAI]) -> None:
    model = connect(use_responses_api=True)
    assert model.bind_tools([{"type": "web_search"}]).invoke("Search.")
    with pytest.raises(openai.BadRequestError, match="web_search"):
        model.bind_tools([{"type": "web_search"}], tool_choice={"type": "web_search"}).invoke("Search.")


def test_structured_output_may_have_tools_beside_it(model: ChatOpenAI) -> None:
    structured = model.with_structured_output(
        Verdict, method="json_schema", strict=True, include_raw=True, tools=[multiply]
    )
    answer = structured.invoke("Is it warm in Rome?")
    assert answer["raw"].tool_calls or isinstance(answer["parsed"], Verdict)


def test_a_graph_of_nodes_calls_tools(model: ChatOpenAI) -> None:
    bound = model.bind_tools([weather], tool_choice="weather")

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [bound.invoke(state["messages"])]}

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node(ask).add_node("tools", ToolNode([weather])).add_node(answer)
    graph.add_edge(START, "ask").add_edge("ask", "tools").add_edge("tools", "answer")
    messages = graph.compile().invoke({"messages": [("human", ASK)]})["messages"]
    assert isinstance(messages[2], ToolMessage)
    assert messages[-1].text
