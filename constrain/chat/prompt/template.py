"""Chat templates, rendered by Jinja's sandbox with the extensions that Hugging Face's templates may use."""

from __future__ import annotations

import json
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from constrain.errors import ModelError
from constrain.remembering import remembered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import jinja2


def render(template: str, variables: Mapping[str, object]) -> str:
    """Renders a template. Raises ``ModelError`` if it fails.

    A template may change lists and objects in the variables, as Kimi K2's does with a list of its own.
    """
    import jinja2

    try:
        return _compile(template).render(variables)
    except jinja2.TemplateError as error:
        raise ModelError(f"the chat template failed: {error}") from error
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError) as error:
        raise ModelError(f"the chat template failed: {type(error).__name__}: {error}") from error


TEMPLATE_BYTES = 16 << 20
"""Bytes of compiled templates in a cache, together: 16 MiB, and as many for templates whose variables are cached."""


@remembered(16, TEMPLATE_BYTES, len)
def free_variables(template: str) -> frozenset[str]:
    """Returns the variables that a template reads without setting them first.

    Raises ``ModelError`` for a broken template.
    """
    import jinja2
    from jinja2 import meta

    try:
        return frozenset(meta.find_undeclared_variables(_environment().parse(template)))
    except jinja2.TemplateError as error:
        raise ModelError(f"the chat template failed: {error}") from error


def tool_variables(template: str, tools: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """Returns the variables with the tools of a conversation, in OpenAI's form, and those that a program must add.

    Some templates (Firefunction's) read no ``tools``, but ``functions``, a JSON text, and ``datetime``. It is a day
    here: with the time, no prompt would begin as the one before.
    """
    used = free_variables(template)
    variables: dict[str, object] = {"tools": tools} if tools else {}
    if "functions" in used and "tools" not in used:
        functions = [tool["function"] for tool in tools]
        variables["functions"] = json.dumps(functions, ensure_ascii=False, indent=4) if tools else ""
    if "datetime" in used:
        variables["datetime"] = datetime.now().astimezone().strftime("%Y-%m-%d")
    return variables


@remembered(16, TEMPLATE_BYTES, lambda template: 50 * len(template))
def _compile(template: str) -> jinja2.Template:
    return _environment().from_string(template)


@cache
def _environment() -> jinja2.Environment:
    import jinja2
    from jinja2.ext import Extension
    from jinja2.sandbox import SandboxedEnvironment

    class Generation(Extension):
        """The tag that marks the model's own text for training; it has no effect here."""

        tags = {"generation"}  # noqa: RUF012 -- as Jinja has it

        def parse(self, parser: jinja2.parser.Parser) -> list[jinja2.nodes.Node]:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    def raise_exception(message: str) -> str:
        raise jinja2.TemplateError(message)

    def tojson(value: object, indent: int | None = None, **_: Any) -> str:
        return json.dumps(value, ensure_ascii=False, indent=indent)

    def strftime_now(form: str) -> str:
        return datetime.now().astimezone().strftime(form)

    environment = SandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation]
    )
    environment.filters["tojson"] = tojson
    environment.globals.update(raise_exception=raise_exception, strftime_now=strftime_now)
    return environment
