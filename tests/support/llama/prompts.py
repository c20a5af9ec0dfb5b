"""Prompts as token ids, for tests and benchmarks that decode themselves."""

from __future__ import annotations

import constrain
from constrain.chat.prompt.conversation import conversation_prompt, format_of
from constrain.chat.prompt.messages import Prompt


def prompt_tokens(model: constrain.Model, prompt: Prompt, *, shown: str = "", constrained: bool = False) -> list[int]:
    """Returns the token ids of a prompt, ready for the answer.

    ``shown``: text in front of the user's first message. ``constrained``: whether a template that can open a reasoning
    section is told not to.
    """
    form = format_of(model.tokenizer, model.chat_template)
    switch = form.thinking and form.thinking.switch
    variables: dict[str, object] = {switch.variable: switch.off if constrained else switch.on} if switch else {}
    return conversation_prompt(
        model.tokenizer, model.chat_template, prompt, form=form, variables=variables, shown=shown
    ).tokens
