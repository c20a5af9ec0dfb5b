"""Models by themselves: chats, streams, events, batches, completions and embeddings."""

from __future__ import annotations

import asyncio  # noqa: TC003
import os
from typing import TYPE_CHECKING, Any

import openai
import pytest
import tiktoken
from langchain.chat_models import init_chat_model
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage, trim_messages
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableParallel
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings

if TYPE_CHECKING:
    from collections.abc import Callable

MODEL = os.environ["CONSTRAIN_MODEL"]

ASK = "Tell me about Oslo."


def test_an_answer_is_a_message(model: ChatOpenAI) -> None:
    message = model.invoke([("system", "You translate to French."), ("human", "I love programming.")])
    assert isinstance(message, AIMessage)
    assert message.text
    assert message.usage_metadata["total_tokens"] > message.usage_metadata["input_tokens"] > 0
    assert message.response_metadata["model_name"] == MODEL
    assert message.id


def test_roles_may_be_a_developers(model: ChatOpenAI) -> None:
    messages = [SystemMessage("Be brief.", additional_kwargs={"__openai_role__": "developer"}), HumanMessage(ASK)]
    assert model.invoke(messages).text


def test_names_and_parts_are_taken(model: ChatOpenAI) -> None:
    content: list[Any] = [{"type": "text", "text": "Hello,"}, {"type": "text", "text": "you"}]
    assert model.invoke([HumanMessage(content=content, name="ada")]).text


def test_a_conversation_goes_on(model: ChatOpenAI) -> None:
    first = model.invoke(ASK)
    assert model.invoke([HumanMessage(ASK), first, HumanMessage("And Bergen?")]).text


def test_a_conversation_may_be_kept_by_the_server(connect: Callable[..., ChatOpenAI]) -> None:
    model = connect(use_responses_api=True)
    first = model.invoke("The word is heron.")
    second = model.invoke("Which?", previous_response_id=first.response_metadata["id"])
    assert second.usage_metadata["input_tokens"] > first.usage_metadata["input_tokens"]
    keeping = connect(use_previous_response_id=True, output_version="responses/v1")
    assert keeping.invoke([HumanMessage("The word?"), keeping.invoke("Hello"), HumanMessage("Well?")]).text


def test_an_answer_is_streamed(model: ChatOpenAI) -> None:
    chunks = list(model.stream(ASK))
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    assert isinstance(whole, AIMessageChunk)
    assert len(chunks) > 2
    assert whole.text
    assert whole.usage_metadata["output_tokens"] > 0


def test_an_answer_is_streamed_to_asynchronous_code(model: ChatOpenAI, loop: asyncio.AbstractEventLoop) -> None:
    async def read() -> list[str]:
        return [chunk.text async for chunk in model.astream(ASK)]

    assert "".join(loop.run_until_complete(read()))


def test_events_are_streamed(model: ChatOpenAI, loop: asyncio.AbstractEventLoop) -> None:
    async def read() -> list[str]:
        chain = model | StrOutputParser()
        return [event["event"] async for event in chain.astream_events(ASK, version="v2")]

    events = loop.run_until_complete(read())
    assert {"on_chat_model_start", "on_chat_model_stream", "on_chat_model_end", "on_parser_stream"} <= set(events)


def test_usage_comes_with_a_stream_where_it_is_asked_for(connect: Callable[..., ChatOpenAI]) -> None:
    assert sum(chunk.usage_metadata is not None for chunk in connect(stream_usage=True).stream("Hello")) == 1
    chunks = list(connect(stream_usage=False).stream("Hello"))
    assert all(chunk.usage_metadata is None for chunk in chunks)


def test_batches_are_answered(model: ChatOpenAI, loop: asyncio.AbstractEventLoop) -> None:
    assert len(model.batch(["Hello", "Hi", "Hey"])) == 3
    assert len(loop.run_until_complete(model.abatch(["Hello", "Hi"]))) == 2


def test_chains_run_beside_each_other(model: ChatOpenAI) -> None:
    prompt = ChatPromptTemplate.from_messages([("human", "{text} in one word")])
    chain = RunnableParallel(one=prompt | model | StrOutputParser(), two=prompt | model | StrOutputParser())
    assert set(chain.invoke({"text": "Sky"})) == {"one", "two"}


def test_several_answers_are_generated(chat: ChatOpenAI, connect: Callable[..., ChatOpenAI]) -> None:
    result = connect(n=2, temperature=1).generate([[HumanMessage("A number?")]])
    assert len(result.generations[0]) == 2
    assert result.llm_output["token_usage"]["total_tokens"] > 0
    assert len(chat.generate([[HumanMessage("A?")], [HumanMessage("B?")]]).generations) == 2


def test_options_go_with_the_request(connect: Callable[..., ChatOpenAI]) -> None:
    model = connect(
        temperature=0.5,
        top_p=0.9,
        seed=3,
        presence_penalty=0.2,
        frequency_penalty=0.2,
        stop_sequences=["\n\n\n"],
        logit_bias={5: -100},
        reasoning_effort="low",
        service_tier="auto",
        metadata={"a": "b"},
        model_kwargs={"user": "somebody"},
        extra_body={"unknown_field": 1},
    )
    assert model.invoke(ASK).text


def test_a_stop_is_not_in_the_text(chat: ChatOpenAI) -> None:
    assert "a" not in chat.invoke("Repeat: bbbabbb", stop=["a"]).text


def test_log_probabilities_come_with_it(chat: ChatOpenAI) -> None:
    message = chat.bind(logprobs=True, top_logprobs=2).invoke("Hello", max_tokens=5)
    content = message.response_metadata["logprobs"]["content"]
    assert [len(token["top_logprobs"]) for token in content] == [2] * len(content)
    assert "".join(token["token"] for token in content) == message.text


def test_a_text_that_is_cut_says_so(chat: ChatOpenAI) -> None:
    assert chat.invoke("Tell a long story.", max_tokens=4).response_metadata["finish_reason"] == "length"


def test_a_text_that_is_cut_is_incomplete(connect: Callable[..., ChatOpenAI]) -> None:
    message = connect(use_responses_api=True).invoke("Tell a long story.", max_tokens=16)
    assert message.response_metadata["status"] == "incomplete"
    assert message.response_metadata["incomplete_details"] == {"reason": "max_output_tokens"}


def test_output_may_be_of_any_version(connect: Callable[..., ChatOpenAI]) -> None:
    for version in ("v0", "responses/v1", "v1"):
        assert connect(use_responses_api=True, output_version=version).invoke("Hello").text


def test_a_model_may_be_named_by_its_provider() -> None:
    model = init_chat_model(f"openai:{MODEL}", max_tokens=10, temperature=0)
    assert model.invoke("Hello").text


def test_an_unknown_model_is_not_found(connect: Callable[..., ChatOpenAI]) -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        connect(model="no-such-model").invoke("Hello")
    assert caught.value.code == "model_not_found"


def test_images_are_refused_by_name(model: ChatOpenAI) -> None:
    content: list[Any] = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
    ]
    with pytest.raises(openai.BadRequestError, match="image"):
        model.invoke([HumanMessage(content=content)])


def test_messages_may_be_trimmed(chat: ChatOpenAI) -> None:
    messages = [SystemMessage("Be brief."), HumanMessage("One"), AIMessage("Two"), HumanMessage("Three")]
    trimmed = trim_messages(messages, max_tokens=2, strategy="last", token_counter=len, include_system=True)
    assert chat.invoke(trimmed).text


def test_completions_are_answered() -> None:
    model = OpenAI(model=MODEL, max_tokens=12, temperature=0)
    assert model.invoke("Once upon a time")
    assert "".join(model.stream("Once upon a time"))
    result = model.generate(["One, two,", "A, b,"])
    assert len(result.generations) == 2
    assert result.llm_output["token_usage"]["total_tokens"] > 0


def test_several_completions_are_answered() -> None:
    model = OpenAI(model=MODEL, max_tokens=8, temperature=1, n=2, best_of=2, seed=1)
    assert len(model.generate(["One, two,"]).generations[0]) == 2


def test_completions_run_in_asynchronous_code(loop: asyncio.AbstractEventLoop) -> None:
    model = OpenAI(model=MODEL, max_tokens=8, temperature=0)

    async def read() -> list[str]:
        return [piece async for piece in model.astream("One, two,")]

    assert loop.run_until_complete(model.ainvoke("One, two,")) == "".join(loop.run_until_complete(read()))


def embeddings(**options: Any) -> OpenAIEmbeddings:
    return OpenAIEmbeddings(model=MODEL, **options)


def test_texts_are_embedded(loop: asyncio.AbstractEventLoop) -> None:
    model = embeddings(check_embedding_ctx_length=False)
    vectors = model.embed_documents(["a cat", "a dog", "Oslo"])
    assert len(vectors) == 3
    assert len({len(vector) for vector in vectors}) == 1
    assert model.embed_query("a cat") == pytest.approx(vectors[0], abs=1e-3)
    assert len(loop.run_until_complete(model.aembed_query("a cat"))) == len(vectors[0])


def test_tokens_are_embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    """LangChain sends numbers of tokens, in this test of an encoding that needs no download: the bytes."""
    ranks = {bytes([byte]): byte for byte in range(256)}
    encoding = tiktoken.Encoding("bytes", pat_str=r"[\s\S]+", mergeable_ranks=ranks, special_tokens={})
    monkeypatch.setattr(tiktoken, "encoding_for_model", lambda _: encoding)
    model = embeddings()
    vectors = model.embed_documents(["a cat", "a dog"])
    assert len(vectors) == 2
    assert len(vectors[0]) == len(model.embed_query("a cat")) > 1


def test_vectors_are_searched() -> None:
    store = InMemoryVectorStore.from_texts(["a cat", "Oslo"], embeddings(check_embedding_ctx_length=False))
    assert len(store.similarity_search("a cat", k=1)) == 1


def test_options_of_responses_go_with_the_request(connect: Callable[..., ChatOpenAI]) -> None:
    model = connect(
        use_responses_api=True,
        store=False,
        reasoning={"effort": "low", "summary": "auto"},
        include=["reasoning.encrypted_content"],
        truncation="disabled",
        verbosity="low",
        service_tier="auto",
        output_version="responses/v1",
    )
    first = model.invoke(ASK)
    assert model.invoke([HumanMessage(ASK), first, HumanMessage("And Bergen?")]).text
