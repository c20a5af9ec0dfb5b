"""Programs of DSPy, through the adapter that sends schemas."""

from __future__ import annotations

from typing import Any, Literal

import dspy
from dspy.lm15 import AccessPolicy, EndpointSupport, ModelSupport, OpenAIChatCompat, ProviderDefinition
from dspy.utils.exceptions import LMError
from shared import KEY, MAX_TOKENS, MODEL, PROMPT, QUESTION, URL, Call

REFUSED = LMError

POLICY = AccessPolicy(
    provider="constrain",
    supports=EndpointSupport(complete=True, stream=True, models=True),
    auth_modes=("bearer",),
    env_keys=("OPENAI_API_KEY",),
    base_url=URL,
)
dspy.lm15.register_provider(
    ProviderDefinition.chat(POLICY, compat=OpenAIChatCompat(max_tokens_field="max_tokens")),
    supports=ModelSupport(function_calling=True, response_schema=True),
)


def connect(model: str = MODEL, **options: Any) -> dspy.LM:
    """A model that neither remembers answers nor asks twice."""
    usual = {"cache": False, "num_retries": 0, "temperature": 0, "max_tokens": MAX_TOKENS}
    return dspy.LM(f"{POLICY.provider}/{model}", **{**usual, **options})


class Ask(dspy.Signature):
    """Call a tool."""

    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    calls: dspy.ToolCalls = dspy.OutputField()


def weather(city: Literal["Oslo", "Rome"], days: Literal[1, 2]) -> str:
    """Tells the weather of the next days."""
    return f"sun in {city} for {days} day(s)"


class Program:
    CHOICES = ("required", "auto")

    def __init__(self, model: str = MODEL, key: str = KEY, max_tokens: int = MAX_TOKENS) -> None:
        self.lm = connect(model, api_key=key, max_tokens=max_tokens)

    def text(self, prompt: str) -> str:
        [text] = self.lm(prompt)
        return text

    def value(self, kind: Any) -> Any:
        signature = dspy.Signature({"text": (str, dspy.InputField()), "value": (kind, dspy.OutputField())}, "Extract.")
        with dspy.context(lm=self.lm, adapter=dspy.JSONAdapter()):
            return dspy.Predict(signature)(text=PROMPT).value

    def calls(self, choice: str) -> list[Call]:
        native = dspy.ChatAdapter(use_native_function_calling=True)
        with dspy.context(lm=connect(tool_choice=choice), adapter=native):
            found = dspy.Predict(Ask)(question=QUESTION, tools=[dspy.Tool(weather)]).calls
        calls = found.tool_calls if found else []
        return [Call(str(place), call.name, call.args) for place, call in enumerate(calls)]

    def embed(self, texts: list[str]) -> Any:
        """By LiteLLM, which DSPy uses for all but chats."""
        return dspy.Embedder(f"openai/{MODEL}", api_base=URL, api_key=KEY, caching=False)(texts)


WAYS = {"program": Program}
