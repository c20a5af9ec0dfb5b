"""Templates: what Hugging Face's extensions of Jinja mean here."""

from __future__ import annotations

import pytest

from constrain import ModelError
from constrain.chat.prompt.template import free_variables, render


def test_the_tag_for_trainers_means_nothing() -> None:
    template = "{% for m in messages %}{% generation %}{% set x = m %}<{{ x }}>{% endgeneration %}{% endfor %}"
    assert render(template, {"messages": ["a", "b"]}) == "<a><b>"
    assert free_variables(template) == {"messages"}


def test_free_variables_are_those_that_are_read_first() -> None:
    template = "{% set a = 1 %}{{ a }}{{ b }}{% if c is defined %}{% endif %}{% for d in e %}{{ d.f }}{% endfor %}"
    assert free_variables(template) == {"b", "c", "e"}


@pytest.mark.parametrize("template", ["{% if %}", "{% generation %}", "{{ a"])
def test_what_is_no_template_is_an_error(template: str) -> None:
    with pytest.raises(ModelError, match="the chat template failed"):
        free_variables(template)
    with pytest.raises(ModelError, match="the chat template failed"):
        render(template, {})
