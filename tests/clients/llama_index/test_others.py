"""Plain answers, streams, completions, responses, embeddings and an index."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import openai
import pytest
from llama_index.core import Document, VectorStoreIndex
from llama_index.core.llms import ChatMessage
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILikeResponses

if TYPE_CHECKING:
    from collections.abc import Callable

    from llama_index.llms.openai_like import OpenAILike

ASK = [ChatMessage(role="system", content="Be brief."), ChatMessage("Tell me about Oslo.")]


def embedder() -> OpenAILikeEmbedding:
    return OpenAILikeEmbedding(
        model_name=os.environ["CONSTRAIN_MODEL"],
        api_base=os.environ["OPENAI_BASE_URL"],
        api_key=os.environ["OPENAI_API_KEY"],
        max_retries=0,
    )


def test_a_chat_is_answered(llm: OpenAILike) -> None:
    answer = llm.chat(ASK)
    assert answer.message.content
    assert answer.raw.usage.total_tokens > 0


def test_an_answer_is_streamed(llm: OpenAILike) -> None:
    parts = [part.delta or "" for part in llm.stream_chat(ASK)]
    assert len(parts) > 2
    assert "".join(parts)


def test_asynchronous_code_is_answered(connect: Callable[..., OpenAILike]) -> None:
    async def read() -> str:
        return "".join([part.delta or "" async for part in await connect(max_tokens=12).astream_chat(ASK)])

    assert asyncio.run(read())


def test_a_prompt_is_completed(connect: Callable[..., OpenAILike]) -> None:
    assert connect(is_chat_model=False, max_tokens=8).complete("One, two,").text
    assert "".join(part.delta or "" for part in connect(is_chat_model=False, max_tokens=8).stream_complete("One,"))


def test_fields_of_this_server_go_with_the_request(connect: Callable[..., OpenAILike]) -> None:
    llm = connect(additional_kwargs={"extra_body": {"regex": "(yes|no)"}})
    assert llm.chat(ASK).message.content in ("yes", "no")


def test_responses_are_made() -> None:
    llm = OpenAILikeResponses(
        model=os.environ["CONSTRAIN_MODEL"],
        api_base=os.environ["OPENAI_BASE_URL"],
        api_key=os.environ["OPENAI_API_KEY"],
        max_output_tokens=16,
    )
    assert llm.chat(ASK).message.content


def test_texts_are_embedded() -> None:
    vectors = embedder().get_text_embedding_batch(["a cat", "Oslo"])
    assert len(vectors) == 2
    assert len(vectors[0]) == len(embedder().get_query_embedding("a cat")) > 1


def test_an_index_is_asked(connect: Callable[..., OpenAILike]) -> None:
    documents = [Document(text="Oslo is in Norway."), Document(text="Cats sleep.")]
    index = VectorStoreIndex.from_documents(
        documents, embed_model=embedder(), transformations=[TokenTextSplitter(tokenizer=str.split)]
    )
    engine = index.as_query_engine(llm=connect(max_tokens=12), similarity_top_k=1)
    answer = engine.query("Where is Oslo?")
    assert str(answer)
    assert len(answer.source_nodes) == 1


def test_an_unknown_model_is_not_found(connect: Callable[..., OpenAILike]) -> None:
    with pytest.raises(openai.NotFoundError):
        connect(model="no-such-model").chat(ASK)
