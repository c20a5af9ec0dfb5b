"""What LangChain alone asks for: methods of structured output, kinds of tools, agents, versions of output, vectors."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import openai
import pytest
import tiktoken
from adapter import WAYS, Chat, Responses
from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy, ToolStrategy
from langchain.chat_models import init_chat_model
from langchain_core.messages import FunctionMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import OpenAI, OpenAIEmbeddings, custom_tool
from langgraph.errors import GraphRecursionError
from shared import FUNCTIONS, MODEL, PROMPT, QUESTION, SUM, Note, Owner, Person, Plan
from typing_extensions import TypedDict

EITHER = pytest.mark.parametrize("way", WAYS.values())


class Movie(TypedDict):
    """A movie."""

    title: Annotated[str, ..., "The title"]
    year: Annotated[int, ..., "The year"]


CLOSED = {**Person.model_json_schema(), "additionalProperties": False}
FUNCTION = {"name": "person", "description": "A person.", "parameters": CLOSED}


@EITHER
@pytest.mark.parametrize("strict", [None, True, False])
@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
@pytest.mark.parametrize(
    "schema", [Plan, Owner, Movie, CLOSED, FUNCTION], ids=["nested", "union", "dict", "json", "function"]
)
def test_structured_output_is_of_its_type(way: Any, method: Any, schema: Any, *, strict: bool | None) -> None:
    answer = way().model.with_structured_output(schema, method=method, strict=strict).invoke(PROMPT)
    if schema in (Plan, Owner):
        assert isinstance(answer, schema)
    else:
        assert set(answer) == ({"title", "year"} if schema is Movie else {"name", "age", "mood"})


@tool
def weather(city: Literal["Oslo", "Rome"], unit: Literal["C", "F"] = "C") -> str:
    """Tells the weather in a city."""
    return f"20 {unit} in {city}"


@EITHER
@pytest.mark.parametrize("strict", [None, True, False])
@pytest.mark.parametrize("kind", [weather, Note], ids=["function", "model"])
def test_tools_of_every_kind_are_called_once_where_that_is_wanted(way: Any, kind: Any, *, strict: bool | None) -> None:
    bound = way().model.bind_tools([kind], tool_choice="any", strict=strict, parallel_tool_calls=False)
    [call] = bound.invoke(QUESTION).tool_calls
    assert call["args"]


def test_custom_tools_write_in_their_grammar() -> None:
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

    bound = Responses().model.bind_tools([add], tool_choice={"type": "custom", "name": "add"})
    assert all(part.isdigit() for part in bound.invoke("1 + 2?").tool_calls[0]["args"]["__arg1"].split("+"))


def run(agent: Any) -> dict[str, Any]:
    """The last state of a graph, which may have ended for its number of steps: a small model may call for ever."""
    state: dict[str, Any] = {}
    try:
        for state in agent.stream({"messages": [("human", QUESTION)]}, {"recursion_limit": 9}, stream_mode="values"):  # noqa: B007
            pass
    except GraphRecursionError:
        assert len(state["messages"]) > 2
    return state


@EITHER
def test_an_agent_calls_tools(way: Any) -> None:
    messages = run(create_agent(way().model, [weather], system_prompt="Use tools."))["messages"]
    ids = {call["id"] for message in messages for call in getattr(message, "tool_calls", ())}
    assert {message.tool_call_id for message in messages if isinstance(message, ToolMessage)} <= ids


@EITHER
@pytest.mark.parametrize("strategy", [ToolStrategy, ProviderStrategy], ids=["tool", "provider"])
def test_an_agent_has_an_answer_with_a_type(way: Any, strategy: Any) -> None:
    one = way().model.model_copy(update={"model_kwargs": {"parallel_tool_calls": False}})  # LangChain reads no more
    agent = create_agent(one, [], response_format=strategy(Person))
    assert isinstance(run(agent)["structured_response"], Person)


def test_functions_in_the_older_way_are_called() -> None:
    model = Chat().model
    message = model.bind(functions=FUNCTIONS, function_call={"name": "note"}).invoke("Note milk.")
    assert Note.model_validate_json(message.additional_kwargs["function_call"]["arguments"])
    assert model.invoke([HumanMessage("Note milk."), message, FunctionMessage(name="note", content="noted")]).text


def test_options_go_with_the_request() -> None:
    content: list[Any] = [{"type": "text", "text": "Hello,"}, {"type": "text", "text": "you"}]
    developer = SystemMessage("Be brief.", additional_kwargs={"__openai_role__": "developer"})
    chat = Chat().model.bind(
        top_p=0.9, seed=3, presence_penalty=0.2, stop=["\n\n\n"], logit_bias={5: -100}, reasoning_effort="low",
        service_tier="auto", user="somebody", extra_body={"unknown_field": 1}, logprobs=True, top_logprobs=2,
    )  # fmt: skip
    message = chat.invoke([developer, HumanMessage(content=content, name="ada")])
    tokens = message.response_metadata["logprobs"]["content"]
    assert "".join(token["token"] for token in tokens) == message.text
    responses = Responses().model.bind(
        store=False, reasoning={"effort": "low", "summary": "auto"}, include=["reasoning.encrypted_content"],
        truncation="disabled", service_tier="auto",
    )  # fmt: skip
    assert responses.invoke([developer, HumanMessage(content=content)]).text


def test_a_conversation_is_kept_by_the_server() -> None:
    model = Responses().model
    first = model.invoke(SUM)
    second = model.invoke("Which?", previous_response_id=first.response_metadata["id"])
    assert second.usage_metadata["input_tokens"] > first.usage_metadata["input_tokens"]
    for version in ("v0", "responses/v1", "v1"):
        keeping = model.model_copy(update={"output_version": version})
        assert keeping.invoke([HumanMessage(SUM), keeping.invoke(SUM), HumanMessage("And?")]).text


def test_why_a_text_ends_and_what_is_refused() -> None:
    assert Chat(max_tokens=4).model.invoke("Tell a story.").response_metadata["finish_reason"] == "length"
    assert Responses(max_tokens=16).model.invoke("Tell a story.").response_metadata["status"] == "incomplete"
    image = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
    with pytest.raises(openai.BadRequestError, match="image"):
        Chat().model.invoke([HumanMessage(content=[image])])
    search = {"type": "web_search"}
    with pytest.raises(openai.BadRequestError, match="web_search"):
        Responses().model.bind_tools([search], tool_choice=search).invoke("Search.")


def test_models_by_name_and_completions() -> None:
    assert init_chat_model(f"openai:{MODEL}", max_tokens=10).invoke("Hello").text
    model = OpenAI(model=MODEL, max_tokens=8, temperature=0)
    assert model.invoke("One, two,") == "".join(model.stream("One, two,"))
    several = OpenAI(model=MODEL, max_tokens=8, temperature=1, n=2, best_of=2)
    assert [len(each) for each in several.generate(["One,", "A,"]).generations] == [2, 2]


def test_tokens_are_embedded_and_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """LangChain sends numbers of tokens, in this test of an encoding that needs no download: the bytes."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    encoding = tiktoken.Encoding("bytes", pat_str=r"[\s\S]+", mergeable_ranks=ranks, special_tokens={})
    monkeypatch.setattr(tiktoken, "encoding_for_model", lambda _: encoding)
    store = InMemoryVectorStore.from_texts(["a cat", "Oslo"], OpenAIEmbeddings(model=MODEL))
    assert len(store.similarity_search("a cat", k=1)) == 1
