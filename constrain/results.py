"""Types of results: the parts of a ``Completion``, and what choices, explanations and constraints return."""

from __future__ import annotations

from constrain.chat.reading.reply import Refusal
from constrain.engine.captures import Captures
from constrain.engine.constraint import Precomputed
from constrain.engine.logits import LogitsProcessor
from constrain.engine.report import Report
from constrain.engine.terminals import ExpectedTerminal
from constrain.generation.checking import Retried
from constrain.generation.choosing import Chosen
from constrain.generation.completion import Timings, Usage
from constrain.generation.observers.confidence.alternatives import Alternative
from constrain.generation.observers.confidence.fields import FieldConfidence
from constrain.generation.observers.trace import LikelyToken, TokenTrace
from constrain.inspection.characters import CharacterRange
from constrain.inspection.explanation import TextExplanation, TokenStep
from constrain.llama.decoding.token_logprob import TokenLogprob
from constrain.quotes.places import QuotePlace

__all__ = [
    "Alternative",
    "Captures",
    "CharacterRange",
    "Chosen",
    "ExpectedTerminal",
    "FieldConfidence",
    "LikelyToken",
    "LogitsProcessor",
    "Precomputed",
    "QuotePlace",
    "Refusal",
    "Report",
    "Retried",
    "TextExplanation",
    "Timings",
    "TokenLogprob",
    "TokenStep",
    "TokenTrace",
    "Usage",
]
