"""The observer of quotes: where those of an answer stand in it and in their sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.chat.reading.reply import Refusal, Reply
from constrain.chat.tools.kinds import FunctionTool
from constrain.generation.observers.observer import Observer
from constrain.generation.quoting import make_quotes
from constrain.quotes.keyword import may_have_quotes
from constrain.quotes.places import Quotes

if TYPE_CHECKING:
    from constrain.chat.tools.kinds import Tool
    from constrain.generation.observers.observer import Observers, Written
    from constrain.generation.plan import Plan
    from constrain.quotes.places import QuotePlace


class QuotesObserver(Observer):
    """Reports ``quotes``."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    @classmethod
    def begin(cls, plan: Plan, others: Observers) -> Observer | None:  # noqa: ARG003
        """Returns the observer of a new answer; ``None`` if it has neither a schema nor a tool with quotes."""
        return cls(plan) if plan.result.quotes is not None or any(map(_may_quote, plan.tools.values())) else None

    def finish(self, written: Written) -> dict[str, Any]:
        """Returns the places of the quotes."""
        return {"quotes": find_quotes(self._plan, written.outcome.text, written.outcome.value)}


def find_quotes(plan: Plan, text: str, value: object) -> tuple[QuotePlace, ...]:
    """Returns the places of the quotes in a finished answer: in its content, then in the arguments of its calls.

    ``text``: text of the content. A refusal has no quotes.
    """
    found: list[QuotePlace] = []
    quotes, is_reply = plan.result.quotes, isinstance(value, Reply)
    if quotes is not None and text and not isinstance(value, Refusal):
        assert isinstance(quotes, Quotes)
        found += quotes.places(text, ("content",) if is_reply else ())
    for number, call in enumerate(value.calls if isinstance(value, Reply) else ()):
        tool = plan.tools.get(call.name)
        if isinstance(tool, FunctionTool) and _may_quote(tool):
            quotes = make_quotes(plan.given.bind(tool.schema_text))
            found += [] if quotes is None else quotes.places(call.text, ("calls", number, "arguments"))
    return tuple(found)


def _may_quote(tool: Tool) -> bool:
    return isinstance(tool, FunctionTool) and may_have_quotes(tool.schema_text)
