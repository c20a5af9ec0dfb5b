"""Tools: functions that a model may call with arguments, and custom tools that take a text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from constrain.chat.tools.arguments import Arguments
from constrain.chat.tools.checks import check_format, check_function, check_name
from constrain.chat.tools.parameters import callers_parameters
from constrain.chat.tools.running import run, run_async
from constrain.errors import OutputValidationError, ToolError
from constrain.given import needs_given, without_given
from constrain.language.schema_text import schema_text
from constrain.types.answer_text import read_answer

if TYPE_CHECKING:
    from collections.abc import Callable

    from constrain.chat.tools.signatures import CallSignature
    from constrain.language.source import Source


@dataclass(frozen=True, slots=True, eq=False)
class FunctionTool:
    """A tool with arguments, made by ``tool`` from a function or by ``tool_from_json``. Calling it calls the function.

    Attributes:
        name: name by which a model calls it.
        description: purpose of the tool, for the model; may be empty.
        parameters: JSON Schema of its arguments (an object) that the model is shown.
        schema: JSON Schema that is compiled for its arguments: exactly the values that the types can read.
        strict: whether ``parameters`` follows OpenAI's strict mode. Arguments match it in either case.
        function: function that ``call`` runs; None if there is none.
        takes_context: whether the function's first argument is the context of the call.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    schema: dict[str, Any]
    strict: bool
    function: Callable[..., Any] | None
    takes_context: bool = False
    signature: CallSignature | None = None
    is_unbound: bool = False
    _text: str = field(init=False, default="")

    def __repr__(self) -> str:
        return f"FunctionTool({self.name!r})"

    @property
    def schema_text(self) -> str:
        """The JSON text that ``arguments_schema`` completes to ``schema``; it is written out once."""
        if not self._text:
            self._keep_text(schema_text(self.schema))
        return self._text

    def _keep_text(self, text: str) -> FunctionTool:
        object.__setattr__(self, "_text", text)
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function."""
        return self._runnable()(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> FunctionTool:
        """Binds a tool defined in the body of a class to an object of the class."""
        if not self.is_unbound:
            return self
        assert self.function is not None
        bound = self.function.__get__(instance, owner)
        if bound is self.function:
            return self
        return replace(self, function=bound, is_unbound=False)._keep_text(self._text)

    def read(self, text: str) -> Arguments:
        """Returns the arguments in a text that matches ``schema``. Raises ``OutputValidationError`` for other texts.

        For a tool from JSON, it checks only that the text is a JSON object; ``validate`` checks more.
        """
        document = _json_object(text)
        if self.signature is None:
            return Arguments(text, document, (), document)
        return self.signature.read(text)

    def validate(self, arguments: str | bytes | Mapping[str, Any]) -> Arguments:
        """Returns the arguments in a JSON text or JSON object.

        Quotes are compared with the sources in the schema itself (``x-sources``); without such a source, any string
        may be a quote. Raises ``OutputValidationError`` with the text, and with a pointer if one is known.

        >>> from constrain import tool
        >>> def area(width: int, height: int = 1) -> int:
        ...     return width * height
        >>> tool(area).validate('{"width": 3}').values
        {'width': 3, 'height': 1}
        """
        text = _json_text(arguments)
        if self.signature is None or self.strict:  # the schema is narrower than the signature
            from constrain.inspection.explanation import explain

            written = json.dumps(_json_object(text), ensure_ascii=False).encode(errors="surrogatepass")
            schema = self.schema
            if needs_given(self.schema_text):
                schema = without_given(schema)
            found = explain(schema, written, property_order="any", numbers="any")
            if not found.matches:
                raise OutputValidationError(f"invalid arguments of tool {self.name!r}: {found}", text=text)
        return self.read(text)

    def call(self, arguments: Arguments | str | bytes | Mapping[str, Any], *, context: Any = None) -> Any:
        """Runs the function, which may be ``async``, and returns its result.

        Raises ``OutputValidationError``, all errors of the function, and ``ToolError`` if there is no function, or if
        it is ``async`` and an event loop runs in this thread: then await ``acall``.
        """
        args, kwargs = self._call(arguments, context)
        return run(self.name, self._runnable(), args, kwargs)

    async def acall(self, arguments: Arguments | str | bytes | Mapping[str, Any], *, context: Any = None) -> Any:
        """Runs the function, for asynchronous code; a function that is not ``async`` runs in a thread of its own."""
        args, kwargs = self._call(arguments, context)
        return await run_async(self._runnable(), args, kwargs)

    def _call(
        self, arguments: Arguments | str | bytes | Mapping[str, Any], context: Any
    ) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        self._runnable()
        bound = arguments if isinstance(arguments, Arguments) else self.validate(arguments)
        return ((context, *bound.args) if self.takes_context else bound.args), bound.kwargs

    def _runnable(self) -> Callable[..., Any]:
        if self.function is None:
            raise ToolError(f"tool {self.name!r} has no function to run; use the arguments of the call yourself")
        if self.is_unbound:
            raise ToolError(
                f"tool {self.name!r} is a method of a class; take it from an instance of the class, as its attribute"
            )
        return self.function


@dataclass(frozen=True, slots=True, eq=False)
class CustomTool:
    """A tool whose input is a text, not JSON: any text, or text of a grammar.

    Args:
        name: name by which a model calls it.
        description: purpose of the tool, for the model.
        format: language of its input: a ``Lark``, a ``Regex``, or a composition by ``sequence``, ``choice``, ``repeat``
            and ``text``; None for any text.
        function: function that ``call`` runs with the text, which may be ``async``; None if there is none. A first
            parameter that is a context, as with ``tool``, receives the context of the call.

    Raises ``ToolError``, and ``GrammarError`` or ``PatternError`` for a format that cannot be compiled.

    >>> from constrain import Regex
    >>> shout = CustomTool("shout", format=Regex("[a-z]+"), function=str.upper)
    >>> shout.call("hello")
    'HELLO'
    """

    name: str
    description: str = ""
    format: Source | None = None
    function: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        check_name(self.name)
        check_format(self.name, self.format)
        if self.function is not None:
            check_function(self.name, self.function, [(("",), {})])

    def __repr__(self) -> str:
        return f"CustomTool({self.name!r})"

    @property
    def takes_context(self) -> bool:
        """Whether the function's first argument is the context of the call."""
        return self.function is not None and callers_parameters(self.function, self.name, {})[1]

    def validate(self, text: str) -> str:
        """Returns the text if it matches the format. Raises ``OutputValidationError``."""
        if self.format is not None:
            from constrain.inspection.explanation import explain

            found = explain(self.format, text)
            if not found.matches:
                raise OutputValidationError(f"invalid input of tool {self.name!r}: {found}", text=text)
        return text

    def call(self, text: str, *, context: Any = None) -> Any:
        """Runs the function with a text and returns its result; raises as ``FunctionTool.call`` does."""
        return run(self.name, self._runnable(), self._args(text, context), {})

    async def acall(self, text: str, *, context: Any = None) -> Any:
        """Runs the function with a text, for asynchronous code; see ``FunctionTool.acall``."""
        return await run_async(self._runnable(), self._args(text, context), {})

    def _args(self, text: str, context: Any) -> tuple[Any, ...]:
        return (context, text) if self.takes_context else (text,)

    def _runnable(self) -> Callable[..., Any]:
        if self.function is None:
            raise ToolError(f"tool {self.name!r} has no function to run; use the text of the call yourself")
        return self.function


def _json_text(arguments: str | bytes | Mapping[str, Any]) -> str:
    """Returns arguments as JSON text.

    Raises ``OutputValidationError`` for invalid UTF-8, TypeError for non-JSON values.
    """
    if isinstance(arguments, Mapping):
        return json.dumps(dict(arguments))
    try:
        return arguments.decode() if isinstance(arguments, bytes) else arguments.encode().decode()
    except UnicodeError as error:
        raise OutputValidationError(f"the arguments are not UTF-8: {error}", text=repr(arguments)) from error


def _json_object(text: str) -> dict[str, Any]:
    """Returns the JSON object that a text spells. Raises ``OutputValidationError``."""
    try:
        document = read_answer(text, pairs=_object, constant=_not_json)
    except ValueError as error:
        raise OutputValidationError(f"the arguments cannot be read as JSON: {error}", text=text) from error
    if not isinstance(document, dict):
        raise OutputValidationError(f"the arguments must be a JSON object, not {text:.80}", text=text)
    return document


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(members)
    if len(result) < len(members):
        raise ValueError(f"a key occurs twice in one object: {', '.join(key for key, _ in members)}")
    return result


def _not_json(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


Tool = FunctionTool | CustomTool
"""A tool that a model may call."""
