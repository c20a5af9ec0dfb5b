"""Every mode of instructor's OpenAI provider that sends the schema where the server enforces it."""

from __future__ import annotations

from typing import Any

import instructor
import openai
from instructor import Mode
from instructor.core import InstructorRetryException
from shared import KEY, MAX_TOKENS, MODEL, PROMPT, SECONDS

REFUSED = (InstructorRetryException, openai.APIStatusError)

MESSAGES: Any = [{"role": "user", "content": PROMPT}]


class Tools:
    mode = Mode.TOOLS

    def __init__(self, model: str = MODEL, key: str = KEY, max_tokens: int = MAX_TOKENS) -> None:
        limit = "max_output_tokens" if self.mode.value.startswith("responses") else "max_tokens"
        client = openai.OpenAI(api_key=key, max_retries=0, timeout=SECONDS)
        self.client: Any = instructor.from_openai(client, mode=self.mode, model=model, **{limit: max_tokens})

    def value(self, kind: Any) -> Any:
        """Asks once: the first answer must be right."""
        found, completion = self.client.create_with_completion(response_model=kind, messages=MESSAGES, max_retries=0)
        assert completion.usage.total_tokens > 0
        return found

    def value_stream(self, kind: Any) -> Any:
        return list(self.client.create_partial(response_model=kind, messages=MESSAGES, max_retries=0))[-1]


ENFORCED = (
    *(Mode.TOOLS, Mode.TOOLS_STRICT, Mode.FUNCTIONS, Mode.JSON_SCHEMA, Mode.JSON_O1, Mode.RESPONSES_TOOLS),
    Mode.RESPONSES_TOOLS_WITH_INBUILT_TOOLS,
)
WAYS = {mode.name: type(mode.name, (Tools,), {"mode": mode}) for mode in ENFORCED}
