"""Keywords for strings: ``x-quote``, ``format`` and its bounds, ``minLength``, ``maxLength`` and ``pattern``."""

# ruff: noqa: ARG001  (all keyword functions have one signature)

from __future__ import annotations

from typing import TYPE_CHECKING

from constrain.errors import SchemaError, UnsupportedSchemaError
from constrain.json_schema.documents.keyword import Keyword
from constrain.json_schema.formats.expressions import INEXACT_FORMATS, LEFT_OUT, format_expression
from constrain.json_schema.formats.generated import GENERATED_FORMATS
from constrain.json_schema.formats.moments import BOUNDED_FORMATS, FORMAT_BOUNDS, moments_between, read_moment, within
from constrain.json_schema.keywords.joining import greater, lesser
from constrain.json_schema.shapes.quotes import quotes_at
from constrain.json_schema.shapes.strings import StringShape, WiderFormat, matches_nothing, pattern_expression
from constrain.quotes.keyword import QUOTE
from constrain.quotes.texts import has_parts, without_spaces_around

if TYPE_CHECKING:
    from constrain.json_schema.documents.keyword import Handler
    from constrain.json_schema.documents.locations import Location
    from constrain.json_schema.keywords.assertions import Assertions
    from constrain.json_schema.shapes.goals import Goals


def _note_quote(given: object) -> str:
    if not given:
        return ""
    options = given if isinstance(given, dict) else {"source": given}
    source = options.get("source")
    of = f"the source {source}" if isinstance(source, str) and source != "prompt" else "the user's text"
    most = options.get("max_length")
    return f"copied word for word from {of}" + (f", at most {most} characters" if isinstance(most, int) else "")


@Keyword(QUOTE, "string", hint=_note_quote, merge=None)
def quote(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``x-quote``: a piece of a source text: true, the name of the source, or an object of options."""
    schema = at.schema
    assert isinstance(schema, dict)
    kinds = schema.get("type", "string")
    if "string" not in (kinds if isinstance(kinds, list) else [kinds]):
        raise SchemaError(f"{QUOTE} is about strings, but the type here is {kinds!r:.80}", pointer=at.pointer(QUOTE))
    if goals.policies.escapes == "any":
        message = f'{QUOTE} needs escapes="canonical": with "any", a character has several spellings'
        raise UnsupportedSchemaError(message, pointer=at.pointer(QUOTE))
    expression = quotes_at(goals, at, value)
    if has_parts(expression):
        found.restrict_strings(StringShape((expression, without_spaces_around()) if expression.cuts else (expression,)))
    else:
        found.strings = None


def _note_format(value: object) -> str:
    return "YYYY-MM-DD" if value == "date" else value if isinstance(value, str) else ""


@Keyword("format", "string", "format", hint=_note_format, merge=None)
def format_(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``format``: enforced in every draft if it is known.

    Schemas of older drafts also use the formats of newer ones. An unknown format is an annotation. Under
    ``formats="strict"``, unknown and inexact formats are refused; under ``inexact="refuse"``, inexact ones.
    """
    if not isinstance(value, str):
        raise SchemaError(f"format must be a string, not {value!r:.80}", pointer=at.pointer("format"))
    policy = goals.policies.formats
    if policy == "annotation":
        return
    expression = format_expression(value)
    if value in INEXACT_FORMATS:
        if policy == "strict" or goals.policies.inexact == "refuse":
            refusal = f"the format {value!r} cannot be enforced exactly: it is written without {LEFT_OUT[value]}"
            raise UnsupportedSchemaError(refusal, pointer=at.pointer("format"))
        narrowed = f"the format {value!r} is narrowed: it is written without {LEFT_OUT[value]}"
        goals.warnings.setdefault(narrowed, at.pointer("format"))
    if expression is not None:
        formats = (value,) if value in GENERATED_FORMATS else ()
        found.restrict_strings(StringShape((expression,), wider=_WIDER.get(value), formats=formats))
    else:
        unknown = f"the format {value!r:.80} is not known"
        if policy == "strict":
            raise UnsupportedSchemaError(unknown, pointer=at.pointer("format"))
        goals.warnings.setdefault(f"{unknown} and is not enforced", at.pointer("format"))


_WIDER = {name: (WiderFormat(name),) for name in LEFT_OUT}


def _bound_of_format(keyword: str) -> Handler:
    """Returns the function of a bound of days and times; that of the first one in a schema reads all."""

    def bound(goals: Goals, at: Location, value: object, found: Assertions) -> None:
        assert isinstance(at.schema, dict)
        given = [each for each in FORMAT_BOUNDS if each in at.schema]
        if goals.policies.formats == "annotation" or given[0] != keyword:
            return
        name = at.schema.get("format")
        if name not in BOUNDED_FORMATS:
            message = f"{keyword} needs one of the formats {', '.join(BOUNDED_FORMATS)} beside it"
            raise UnsupportedSchemaError(message, pointer=at.pointer(keyword))
        low, high = BOUNDED_FORMATS[name]
        for each in given:
            moment = read_moment(name, at.schema[each])
            if moment is None:
                raise SchemaError(f"{each} must be a {name}, not {at.schema[each]!r:.80}", pointer=at.pointer(each))
            low, high = within(each, moment, low, high)
        if name != "date":
            narrowed = f"a {name} with a bound is narrowed: it is written in UTC (Z) and whole seconds"
            goals.warnings.setdefault(narrowed, at.pointer(keyword))
        expression = moments_between(name, low, high)
        if expression is None:
            found.strings = None
        else:
            found.restrict_strings(StringShape((expression,), wider=_WIDER[name] if name != "date" else None))

    return bound


for _name, _says in (
    ("formatMinimum", "the first day or time of a string with the format date, time or date-time, as in Ajv"),
    ("formatMaximum", "the last day or time"),
    ("formatExclusiveMinimum", "a day or time after which the string's one lies"),
    ("formatExclusiveMaximum", "a day or time before which the string's one lies"),
):
    Keyword(_name, "string", "format", hint=None, merge=None, says=_says)(_bound_of_format(_name))


@Keyword("minLength", "string", hint=None, merge=greater)
def min_length(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``minLength``: the least number of code points."""
    found.restrict_strings(StringShape(minimum=goals.count(at, "minLength", value)))


@Keyword("maxLength", "string", hint=None, merge=lesser)
def max_length(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``maxLength``: the greatest number of code points."""
    found.restrict_strings(StringShape(maximum=goals.count(at, "maxLength", value)))


def _note_pattern(value: object) -> str:
    return f"matching {value}" if isinstance(value, str) else ""


@Keyword("pattern", "string", hint=_note_pattern, merge=None)
def pattern(goals: Goals, at: Location, value: object, found: Assertions) -> None:
    """``pattern``: an ECMA-262 pattern that is found somewhere in the string."""
    expression = pattern_expression(at, value, "pattern")
    if matches_nothing(expression):
        found.strings = None
    else:
        found.restrict_strings(StringShape((expression,)))
