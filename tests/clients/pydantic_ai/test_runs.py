"""Runs of agents: histories, settings, usage and errors."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from pydantic import BaseModel, Field
from pydantic_ai import (
    Agent,
    Embedder,
    ModelHTTPError,
    ModelSettings,
    NativeOutput,
    UsageLimitExceeded,
    UsageLimits,
    capture_run_messages,
)
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.direct import model_request_stream_sync, model_request_sync
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    PartStartEvent,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.ollama import OllamaModel
from pydantic_ai.models.openai import (
    OpenAIChatModel,
    OpenAIChatModelSettings,
    OpenAIResponsesModel,
    OpenAIResponsesModelSettings,
)
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.providers.ollama import OllamaProvider
from pydantic_ai.tools import ToolDefinition

if TYPE_CHECKING:
    from pydantic_ai.providers.openai import OpenAIProvider

    AnyModel = OpenAIChatModel | OpenAIResponsesModel


class Trip(BaseModel):
    place: str = Field(max_length=30)
    days: int = Field(ge=1, le=30)


ASK = "Ada wants to see Rome for three days."


def test_a_conversation_goes_on(model: AnyModel) -> None:
    agent = Agent(model, instructions="Be brief.")
    first = agent.run_sync("Tell me a joke.")
    second = agent.run_sync("Explain?", message_history=first.new_messages())
    assert len(second.all_messages()) == 4
    assert len(second.new_messages()) == 2


def test_a_conversation_goes_on_after_structured_output(model: AnyModel) -> None:
    first = Agent(model, output_type=Trip).run_sync(ASK)
    second = Agent(model).run_sync("And then?", message_history=first.all_messages())
    assert isinstance(second.output, str)


def test_a_conversation_may_be_kept_as_json(model: AnyModel) -> None:
    kept = Agent(model, system_prompt="Be brief.").run_sync("Hello.").all_messages_json()
    history = ModelMessagesTypeAdapter.validate_json(kept)
    assert Agent(model).run_sync("Again.", message_history=history).output


def test_a_conversation_goes_on_by_another_endpoint(
    chat_model: OpenAIChatModel, responses_model: OpenAIResponsesModel
) -> None:
    first = Agent(responses_model, output_type=Trip).run_sync(ASK)
    second = Agent(chat_model).run_sync("And then?", message_history=first.all_messages())
    third = Agent(responses_model).run_sync("And then?", message_history=second.all_messages())
    assert isinstance(third.output, str)


def test_a_conversation_may_be_kept_by_the_server(responses_model: OpenAIResponsesModel) -> None:
    agent = Agent(responses_model)
    first = agent.run_sync("The word is heron.")
    settings = OpenAIResponsesModelSettings(openai_previous_response_id=first.response.provider_response_id)
    second = agent.run_sync("What is the word?", model_settings=settings)
    assert second.usage.input_tokens > first.usage.input_tokens
    settings = OpenAIResponsesModelSettings(openai_previous_response_id="auto")
    assert agent.run_sync("And?", message_history=second.all_messages(), model_settings=settings).output


def test_settings_go_with_the_request(model: AnyModel) -> None:
    settings = OpenAIChatModelSettings(
        max_tokens=40,
        temperature=0.3,
        top_p=0.9,
        timeout=60,
        parallel_tool_calls=False,
        openai_user="somebody",
        openai_reasoning_effort="low",
        openai_service_tier="auto",
        openai_prompt_cache_key="key",
        extra_headers={"x-some": "header"},
        extra_body={"unknown_field": 1},
    )
    assert isinstance(Agent(model, output_type=Trip).run_sync(ASK, model_settings=settings).output, Trip)


def test_settings_of_chats_alone(chat_model: OpenAIChatModel) -> None:
    settings = ModelSettings(
        seed=7,
        presence_penalty=0.5,
        frequency_penalty=0.5,
        logit_bias={"5": -100},
        stop_sequences=["\n\n\n\n"],
    )
    outputs = [Agent(chat_model, output_type=Trip).run_sync(ASK, model_settings=settings).output for _ in range(2)]
    assert all(isinstance(output, Trip) for output in outputs)


def test_log_probabilities_of_chats(chat_model: OpenAIChatModel) -> None:
    settings = OpenAIChatModelSettings(openai_logprobs=True, openai_top_logprobs=2, max_tokens=10)
    details = Agent(chat_model).run_sync("Hello", model_settings=settings).response.provider_details
    assert details is not None
    assert all(len(token["top_logprobs"]) == 2 for token in details["logprobs"])


def test_log_probabilities_of_responses(responses_model: OpenAIResponsesModel) -> None:
    settings = OpenAIResponsesModelSettings(openai_logprobs=True, openai_top_logprobs=2, max_tokens=10)
    response = Agent(responses_model).run_sync("Hello", model_settings=settings).response
    details = next(part for part in response.parts if isinstance(part, TextPart)).provider_details
    assert details is not None
    assert all(len(token["top_logprobs"]) == 2 for token in details["logprobs"])


def test_usage_is_counted(model: AnyModel) -> None:
    usage = Agent(model).run_sync("Hello").usage
    assert usage.requests == 1
    assert usage.input_tokens > 0
    assert 0 < usage.output_tokens <= 64


def test_usage_is_limited(model: AnyModel) -> None:
    with pytest.raises(UsageLimitExceeded):
        Agent(model).run_sync("Tell a long story.", usage_limits=UsageLimits(output_tokens_limit=1))


def test_a_text_that_is_cut_says_so(model: AnyModel) -> None:
    response = Agent(model).run_sync("Tell a long story.", model_settings={"max_tokens": 5}).response
    assert response.finish_reason == "length"
    assert response.usage.output_tokens == 5


def test_an_answer_knows_where_it_is_from(model: AnyModel) -> None:
    response = Agent(model).run_sync("Hello").response
    assert response.model_name == os.environ["CONSTRAIN_MODEL"]
    assert response.provider_response_id
    assert response.finish_reason in ("stop", "length")


@pytest.mark.parametrize("kind", ["chat", "responses"])
def test_an_unknown_model_is_not_found(provider: OpenAIProvider, kind: str) -> None:
    model = (OpenAIChatModel if kind == "chat" else OpenAIResponsesModel)("no-such-model", provider=provider)
    with pytest.raises(ModelHTTPError) as caught:
        Agent(model).run_sync("Hello")
    assert caught.value.status_code == 404
    assert caught.value.body["code"] == "model_not_found"


def test_images_are_refused_by_name(model: AnyModel) -> None:
    with pytest.raises(ModelHTTPError, match="image") as caught:
        Agent(model).run_sync(["What is it?", BinaryContent(b"\x89PNG", media_type="image/png")])
    assert caught.value.status_code == 400


def test_too_few_tokens_for_any_answer_are_refused(model: AnyModel) -> None:
    with pytest.raises(ModelHTTPError, match="enough") as caught:
        Agent(model, output_type=Trip).run_sync(ASK, model_settings={"max_tokens": 1})
    assert caught.value.status_code == 400


def test_a_model_is_asked_directly(model: AnyModel) -> None:
    response = model_request_sync(model, [ModelRequest.user_text_prompt("Hello")])
    assert isinstance(response, ModelResponse)
    with model_request_stream_sync(model, [ModelRequest.user_text_prompt("Hello")]) as stream:
        assert any(isinstance(event, PartStartEvent) for event in stream)


def test_a_model_is_asked_directly_with_tools(model: AnyModel) -> None:
    tool = ToolDefinition(name="trip", description="Plans a trip.", parameters_json_schema=Trip.model_json_schema())
    response = model_request_sync(
        model,
        [ModelRequest.user_text_prompt(ASK)],
        model_request_parameters=ModelRequestParameters(function_tools=[tool], allow_text_output=False),
    )
    call = next(part for part in response.parts if isinstance(part, ToolCallPart))
    assert Trip.model_validate(call.args_as_dict())


def test_what_was_said_is_known_after_an_error(model: AnyModel) -> None:
    with capture_run_messages() as messages, pytest.raises(UsageLimitExceeded):
        Agent(model).run_sync("Hello", usage_limits=UsageLimits(output_tokens_limit=1))
    assert isinstance(messages[0], ModelRequest)


def test_texts_are_embedded(provider: OpenAIProvider) -> None:
    from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel

    embedder = Embedder(OpenAIEmbeddingModel(os.environ["CONSTRAIN_MODEL"], provider=provider))
    result = embedder.embed_documents_sync(["red", "green"])
    assert len(result.embeddings) == 2
    assert len(result.embeddings[0]) == len(result.embeddings[1]) > 1


def test_settings_of_responses_alone(responses_model: OpenAIResponsesModel) -> None:
    settings = OpenAIResponsesModelSettings(
        openai_store=False,
        openai_truncation="disabled",
        openai_text_verbosity="low",
        openai_reasoning_effort="low",
        openai_reasoning_summary="auto",
        openai_send_reasoning_ids=False,
    )
    assert isinstance(Agent(responses_model, output_type=Trip).run_sync(ASK, model_settings=settings).output, Trip)


def test_tools_of_the_provider_are_left_out(responses_model: OpenAIResponsesModel) -> None:
    assert Agent(responses_model, capabilities=[NativeTool(WebSearchTool())]).run_sync("Search.")


@pytest.mark.parametrize("prefix", ["openai", "openai-chat", "openai-responses"])
def test_a_model_may_be_named_by_its_provider(prefix: str) -> None:
    """The address is that of the environment."""
    agent = Agent(f"{prefix}:{os.environ['CONSTRAIN_MODEL']}", output_type=Trip, model_settings={"max_tokens": 60})
    assert isinstance(agent.run_sync(ASK).output, Trip)


def test_models_of_other_servers_are_answered() -> None:
    provider = OllamaProvider(base_url=os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"])
    model = OllamaModel(os.environ["CONSTRAIN_MODEL"], provider=provider, settings={"max_tokens": 60})
    assert isinstance(Agent(model, output_type=Trip).run_sync(ASK).output, Trip)
    assert isinstance(Agent(model, output_type=NativeOutput(Trip)).run_sync(ASK).output, Trip)


def test_another_model_answers_where_one_is_not_there(chat_model: OpenAIChatModel, provider: OpenAIProvider) -> None:
    missing = OpenAIChatModel("no-such-model", provider=provider)
    assert isinstance(Agent(FallbackModel(missing, chat_model), output_type=Trip).run_sync(ASK).output, Trip)


def test_the_type_may_be_that_of_one_run(model: AnyModel) -> None:
    agent = Agent(model)
    assert isinstance(agent.run_sync(ASK, output_type=Trip).output, Trip)
    with agent.override(instructions="Be brief."):
        assert agent.run_sync("Hello").output
