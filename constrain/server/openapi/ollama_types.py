"""The bodies of Ollama's API as types, from which the description is made."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import Required, TypedDict


class CalledFunction(TypedDict, total=False):
    """The called function of a call."""

    index: int
    name: Required[str]
    arguments: Required[dict[str, Any] | str]


class OllamaCall(TypedDict, total=False):
    """A call of a tool."""

    id: str
    function: Required[CalledFunction]


class OllamaMessage(TypedDict, total=False):
    """A message of a conversation."""

    role: Required[Literal["system", "user", "assistant", "tool"]]
    content: str
    thinking: str
    tool_calls: list[OllamaCall]
    tool_name: str
    tool_call_id: str


class OllamaFunction(TypedDict, total=False):
    """A function that a model may call."""

    name: Required[str]
    description: str
    parameters: dict[str, Any]


class OllamaTool(TypedDict, total=False):
    """A tool that a model may call."""

    type: Literal["function"]
    function: Required[OllamaFunction]


class OllamaChatBody(TypedDict, total=False):
    """The lists in the body of ``/api/chat``."""

    messages: list[OllamaMessage]
    tools: list[OllamaTool]


class OllamaAnswer(TypedDict, total=False):
    """The members that all answers, and all their lines, share."""

    model: Required[str]
    created_at: Required[str]
    done: Required[bool]
    done_reason: Literal["stop", "length", "load", "unload"]
    total_duration: int
    load_duration: int
    prompt_eval_count: int
    prompt_eval_duration: int
    eval_count: int
    eval_duration: int
    logprobs: list[dict[str, Any]]


class OllamaChatAnswer(OllamaAnswer):
    """An answer of ``/api/chat``, or a line of it."""

    message: Required[OllamaMessage]


class OllamaGenerateAnswer(OllamaAnswer, total=False):
    """An answer of ``/api/generate``, or a line of it."""

    response: Required[str]
    thinking: str


class OllamaVectors(TypedDict):
    """The response of ``/api/embed``."""

    model: str
    embeddings: list[list[float]]
    total_duration: int
    load_duration: int
    prompt_eval_count: int


class OllamaStatus(TypedDict):
    """The response of ``/api/pull``, or its line."""

    status: Literal["success"]
