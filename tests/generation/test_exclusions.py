"""The table of options that exclude or need each other, and who reads it."""

from __future__ import annotations

import pytest
from typer import BadParameter

import constrain
from constrain.cli import flags
from constrain.fields import values
from constrain.fields.values import FieldError
from constrain.generation.exclusions import NAMES, RULES, Rule, broken_rules, refuse_together
from tests.support import for_each

OTHERS = {
    *("n", "vote", "schemas", "partial", "run_tools", "checkpoint", "id_column"),  # arguments of functions
    *("prompt", "messages", "echo", "functions", "function_call", "stream_options", "system", "raw", "think"),  # fields
    *("add_generation_prompt", "continue_final_message", "after_id", "before_id"),
    *("SCHEMA", "MODEL", "TEXT"),  # arguments of programs
}
"""Names that are no ``ChatOptions``."""


def broken(rule: Rule) -> dict[str, bool]:
    """Options that break one rule."""
    chosen = dict.fromkeys(rule.others, rule.relation != "needs")
    return chosen if rule.relation == "choice" else {rule.option: True, **chosen, "prompts": 2}


@for_each("rule", RULES)
def test_each_place_refuses_with_its_own_words(rule: Rule) -> None:
    given = broken(rule)
    assert rule.python or rule.field or rule.flag, "no place refuses"
    for place, refuse, error in (
        ("python", refuse_together, rule.error),
        ("field", values.refuse_together, FieldError),
        ("flag", flags.refuse_together, BadParameter),
    ):
        if message := getattr(rule, place):
            assert rule in [each for each, _ in broken_rules(place, given)]
            with pytest.raises(error) as caught:
                refuse(**given)
            assert str(caught.value).startswith(message.partition("{")[0])


@for_each("rule", RULES)
def test_a_rule_names_options_that_there_are(rule: Rule) -> None:
    known = {*constrain.options.ChatOptions.__annotations__, *NAMES, *OTHERS}
    assert not [name for name in (rule.option, *rule.others) if name not in known and "--" not in name]


@for_each("rule", [rule for rule in RULES if rule.relation == "needs"])
def test_nothing_is_refused_where_an_option_has_what_it_needs(rule: Rule) -> None:
    for other in rule.others:
        assert rule.broken_by({**broken(rule), other: True}) == ""
    assert rule.broken_by({rule.option: True}) == "", "it is not known here whether there are the others"
