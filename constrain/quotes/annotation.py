"""``Quote``: marks strings in Python types as quotes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from constrain.quotes.keyword import QUOTE, read_keyword

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema


@dataclass(frozen=True, slots=True)
class Quote:
    """An annotation: ``Annotated[str, Quote()]`` is a string that stands word for word in a source text.

    The model cannot write anything else there. ``Completion.quotes`` says where each quote stands. For "not stated",
    write ``Annotated[str, Quote()] | None``.

    Attributes:
        source: name of the source, one of those in ``sources=``; ``None`` for the texts of the user's messages. A
            quote lies within one message, or within one of the texts of the source.
        whole_words: whether quotes begin and end at the boundaries of words, which are runs of letters, marks, digits
            and ``_``, and have no white space around them.
        min_length: fewest characters; ``None`` for 1. The empty quote is allowed only with 0.
        max_length: most characters; ``None`` for no limit.
        fold: whether case and white space are folded: the model writes lower case, and one space for each run of white
            space; value and text of the answer have the source's own spelling.

    Raises ``TypeError`` and ``ValueError`` for options that cannot be.

    >>> import pydantic
    >>> from typing import Annotated
    >>> pydantic.TypeAdapter(Annotated[str, Quote("report", max_length=80)]).json_schema()
    {'type': 'string', 'x-quote': {'max_length': 80, 'source': 'report'}}
    """

    source: str | None = None
    whole_words: bool = False
    min_length: int | None = None
    max_length: int | None = None
    fold: bool = False

    def __post_init__(self) -> None:
        """Checks the options."""
        read_keyword(self.keyword())

    def keyword(self) -> Any:
        """Returns the value of ``x-quote`` in a JSON Schema."""
        given = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in given.items() if value is not None and value is not False} or True

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler | None = None
    ) -> dict[str, Any]:
        """Adds the keyword to the schema of a string. Raises ``TypeError`` for the class in place of an instance."""
        if handler is None:  # Pydantic called the class itself, with two arguments
            raise TypeError("Quote is a class; write Annotated[str, constrain.Quote()]")
        schema = handler(core_schema)
        return {**handler.resolve_ref_schema(schema), QUOTE: self.keyword()}
