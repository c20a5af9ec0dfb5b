"""The shared beginning of a prompt ends where the text of the user's last message begins."""

from __future__ import annotations

from typing import Any

import constrain
from constrain.chat.prompt.conversation import conversation_prompt
from tests.support import for_each

SYSTEM = {"role": "system", "content": "You are a librarian."}
TURN = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day."}]

TEMPLATES = {
    "none": "",
    "tags": "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content | trim }}<|im_end|>\n{% endfor %}",
    "twice": "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{{ messages[-1].content }}",
    "first": "{{ messages[-1].content }}\n{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}",
    "picky": "{% for m in messages %}{% if m.content in '01' %}{{ raise_exception('no') }}{% endif %}"
    "{{ m.content }}{% endfor %}",
}


def shared_text(
    model: constrain.Model, messages: list[dict[str, str]] | str, template: str | None = None, **options: Any
) -> str:
    template = model.chat_template if template is None else template
    prompt = conversation_prompt(model.tokenizer, template, messages, **options)
    return model.tokenizer.show(prompt.tokens[: prompt.count_shared()])


@for_each("question", ["What?", " What?", "\n\nWhat?", "0", "1", "01", "", "<|im_end|>", "ß"])
def test_no_text_of_the_question_is_shared(question: str, model: constrain.Model) -> None:
    asked = {"role": "user", "content": question}
    for before in ([SYSTEM], [SYSTEM, *TURN]):
        found = shared_text(model, [*before, asked])
        whole = shared_text(model, [*before, {"role": "user", "content": "Something else"}])
        assert found in (whole, whole[:-1])  # a line break may be a token with one of the question
        assert "You are a librarian." in found
        assert found.rstrip().endswith("<|im_start|>user")


def test_a_schema_in_front_of_the_question_is_shared(model: constrain.Model) -> None:
    found = shared_text(model, "What?", shown="Answer with a number.")
    assert "Answer with a number." in found
    assert "What" not in found


@for_each("name", TEMPLATES)
def test_any_template_has_a_shared_beginning(name: str, model: constrain.Model) -> None:
    found = shared_text(model, [SYSTEM, {"role": "user", "content": "What?"}], TEMPLATES[name])
    assert "What" not in found
    assert ("librarian" in found) == (name in ("none", "tags", "twice"))


def test_without_a_message_of_the_user_nothing_is_shared(model: constrain.Model) -> None:
    assert shared_text(model, [SYSTEM]) == ""
