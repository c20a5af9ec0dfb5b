"""What LlamaIndex alone asks for: structured models, functions that are called, agents, completions and an index."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from adapter import TOOLS, WAYS, Format
from llama_index.core import Document, PromptTemplate, VectorStoreIndex
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.node_parser import TokenTextSplitter
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.openai_like import OpenAILikeResponses
from shared import KEY, MODEL, PROMPT, QUESTION, URL, Person

WHERE: Any = {"api_base": URL, "api_key": KEY}


@pytest.mark.parametrize("way", WAYS.values())
def test_a_structured_model_answers_with_an_instance(way: Any) -> None:
    answer = way().llm.as_structured_llm(Person).chat([ChatMessage(PROMPT)])
    assert isinstance(answer.raw, Person)
    Person.model_validate_json(answer.message.content or "")
    assert isinstance(asyncio.run(way().llm.astructured_predict(Person, PromptTemplate(PROMPT))), Person)


def test_a_function_is_called_with_what_matches() -> None:
    answer = Format().llm.predict_and_call(TOOLS[:1], user_msg=QUESTION, tool_required=True)
    assert str(answer).startswith("sun in ")


def test_an_agent_ends() -> None:
    """The small model may call for ever: then the agent counts, and asks for a last answer."""
    agent = FunctionAgent(tools=TOOLS, llm=Format(max_tokens=40).llm, system_prompt="Be brief.")

    async def run() -> str:
        return str(await agent.run(QUESTION, max_iterations=4, early_stopping_method="generate"))

    assert asyncio.run(run()) is not None


def test_a_prompt_is_completed() -> None:
    llm = Format(max_tokens=8, is_chat_model=False).llm
    assert llm.complete("One, two,").text
    assert "".join(part.delta or "" for part in llm.stream_complete("One,"))


def test_fields_of_this_server_go_with_the_request() -> None:
    llm = Format(additional_kwargs={"extra_body": {"regex": "(yes|no)"}}).llm
    assert llm.chat([ChatMessage(PROMPT)]).message.content in ("yes", "no")


def test_responses_are_made() -> None:
    llm = OpenAILikeResponses(model=MODEL, max_output_tokens=16, **WHERE)
    assert llm.chat([ChatMessage(PROMPT)]).message.content


def test_an_index_is_asked() -> None:
    embedder = OpenAILikeEmbedding(model_name=MODEL, max_retries=0, **WHERE)
    documents = [Document(text="Oslo is in Norway."), Document(text="Cats sleep.")]
    index = VectorStoreIndex.from_documents(
        documents, embed_model=embedder, transformations=[TokenTextSplitter(tokenizer=str.split)]
    )
    engine = index.as_query_engine(llm=Format(max_tokens=12).llm, similarity_top_k=1)
    assert len(engine.query("Where is Oslo?").source_nodes) == 1
