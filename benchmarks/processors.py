"""Logits processors for transformers: ours, XGrammar's, and llguidance's masks in a processor as its README shows.

    python benchmarks/processors.py --output benchmarks/results/processors.json

``generate`` writes a batch of eight answers with eight schemas, sampled with the same seed, with the vocabulary of the
default model and a small LLaMA of random weights, so that the processor is a large part of the time. The engines take
turns, so that all meet the same disturbances of the machine; compiling is not timed. What is reported:

    us per step       time in the processor for one step of the batch: eight masks, and setting the logits
    ms in all         time of one step of ``generate``: model, processor and sampling
    valid             answers that are valid by jsonschema

Needs ``torch``, ``transformers``, ``xgrammar`` and ``llguidance``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import llguidance.hf
import llguidance.torch
import torch
import transformers
import xgrammar
from about import origin
from rich.console import Console
from rich.table import Table
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

import constrain
from constrain.integrations.transformers import logits_processor
from constrain.llama.model import default_model_path
from constrain.vocabulary.gguf.metadata import read_metadata

sys.path.append(str(Path(__file__).parent.parent))  # behind what is installed: the sources may have no kernel

from tests.support.small_transformers import make_model

if TYPE_CHECKING:
    from collections.abc import Callable

    Processor = Callable[[Any, Any], Any]

SEED = 1


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_TEXT = {"type": "string"}
_NAME = {"type": "string", "maxLength": 20}

SCHEMAS: list[dict[str, Any]] = [
    _object(name=_NAME, age={"type": "integer", "minimum": 0, "maximum": 150}),
    _object(title=_TEXT, tags={"type": "array", "items": _NAME, "maxItems": 5}),
    _object(level={"enum": ["low", "middle", "high"]}, reason=_TEXT),
    _object(day={"type": "string", "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$"}, amount={"type": "number"}),
    {"type": "array", "items": _object(x={"type": "number"}, y={"type": "number"}), "maxItems": 8},
    _object(kind={"const": "order"}, lines={"type": "array", "items": _object(item=_NAME, count={"type": "integer"})}),
    _object(answer=_TEXT, is_sure={"type": "boolean"}, sources={"type": "array", "items": _TEXT, "maxItems": 3}),
    {"anyOf": [_object(error=_TEXT), _object(result={"type": "integer"}, note={"anyOf": [_TEXT, {"type": "null"}]})]},
]
"""One for each row. All three engines take them."""


@dataclass
class Measured:
    """The times of one engine, a number for each round.

    Attributes:
        steps: microseconds in the processor for one step of the batch, the median of a round.
        whole: milliseconds of one step of ``generate``, the mean of a round.
        valid: answers of all rounds that are whole and valid; ``answers``: their number.
    """

    steps: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    valid: int = 0
    answers: int = 0


class LlguidanceProcessor:
    """Masks by llguidance's matchers, set by its function for torch."""

    def __init__(self, tokenizer: Any, grammars: list[str], eos: int) -> None:
        self._matchers = [llguidance.LLMatcher(tokenizer, grammar) for grammar in grammars]
        self._masks = llguidance.torch.allocate_token_bitmask(len(grammars), tokenizer.vocab_size)
        self._length = 0
        self._eos = eos

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Returns the masked scores."""
        if self._length:
            for matcher, token in zip(self._matchers, input_ids[:, -1].tolist(), strict=True):
                if not matcher.is_stopped():
                    matcher.consume_token(token)
        self._length += 1
        for row, matcher in enumerate(self._matchers):
            if matcher.is_stopped():
                self._masks[row] = 0
                self._masks[row, self._eos // 32] = 1 << (self._eos % 32)
            else:
                llguidance.torch.fill_next_token_bitmask(matcher, self._masks, row)
        llguidance.torch.apply_token_bitmask_inplace(scores, self._masks.to(scores.device))
        return scores


class Timed:
    """A processor whose calls are timed."""

    def __init__(self, processor: Processor) -> None:
        self.processor = processor
        self.seconds: list[float] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Returns what the processor returns."""
        begun = time.perf_counter()
        masked = self.processor(input_ids, scores)
        self.seconds.append(time.perf_counter() - begun)
        return masked


def make_tokenizer(path: Path) -> Any:
    """Returns the tokenizer in a GGUF file with a byte-level vocabulary, as transformers has it."""
    names = ("tokenizer.ggml.tokens", "tokenizer.ggml.merges")
    metadata = read_metadata(path, arrays=names)
    values: Any = metadata.values
    tokens, merges = ([item.decode() for item in values[name].to_list()] for name in names)
    pairs = [tuple(merge.split(" ")) for merge in merges]
    made = Tokenizer(models.BPE(vocab={token: number for number, token in enumerate(tokens)}, merges=pairs))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    eos = tokens[values["tokenizer.ggml.eos_token_id"]]
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, eos_token=eos, pad_token=eos, padding_side="left"
    )


def engines(tokenizer: Any, max_tokens: int) -> dict[str, Callable[[], Processor]]:
    """Returns, for each engine, a function that makes the processor of one batch; schemas are compiled here."""
    vocabulary = constrain.Vocabulary.from_transformers(tokenizer)
    constraints = [constrain.compile(schema, vocabulary, cache=False) for schema in SCHEMAS]
    info = xgrammar.TokenizerInfo.from_huggingface(tokenizer, vocab_size=len(tokenizer))
    compiler = xgrammar.GrammarCompiler(info)
    compiled = [compiler.compile_json_schema(json.dumps(schema)) for schema in SCHEMAS]
    guided = llguidance.hf.from_tokenizer(tokenizer)
    grammars = [llguidance.LLMatcher.grammar_from_json_schema(schema) for schema in SCHEMAS]
    return {
        "constrain": lambda: logits_processor(constraints, max_new_tokens=max_tokens),
        "xgrammar": lambda: xgrammar.contrib.hf.LogitsProcessor(compiled),
        "llguidance": lambda: LlguidanceProcessor(guided, grammars, tokenizer.eos_token_id),
    }


def measure(rounds: int, max_tokens: int) -> dict[str, Measured]:
    """Measures all engines in turns; the first round warms up and is left out."""
    import xgrammar.contrib.hf  # noqa: F401 - an attribute of xgrammar from here on

    tokenizer = make_tokenizer(default_model_path())
    model = make_model(len(tokenizer))
    inputs = tokenizer(["Answer."] * len(SCHEMAS), return_tensors="pt", padding=True)
    prompt = inputs["input_ids"].shape[1]
    made = engines(tokenizer, max_tokens)
    found = {name: Measured() for name in ("no processor", *made)}
    for number in range(rounds + 1):
        order = list(found) if number % 2 else list(reversed(found))
        for name in order:
            timed = None if name == "no processor" else Timed(made[name]())
            torch.manual_seed(SEED + number)
            begun = time.perf_counter()
            sequences = model.generate(
                **inputs,
                max_new_tokens=max_tokens,
                do_sample=True,
                pad_token_id=tokenizer.eos_token_id,
                eos_token_id=tokenizer.eos_token_id,
                logits_processor=[] if timed is None else [timed],
            )
            seconds = time.perf_counter() - begun
            if not number:
                continue
            answers = sequences[:, prompt:]
            measured = found[name]
            measured.whole.append(seconds / answers.shape[1] * 1e3)
            if timed is not None:
                measured.steps.append(statistics.median(timed.seconds) * 1e6)
                measured.answers += len(answers)
                measured.valid += sum(
                    is_valid(tokenizer.decode(answer, skip_special_tokens=True), schema)
                    for answer, schema in zip(answers, SCHEMAS, strict=True)
                )
    return found


def is_valid(text: str, schema: dict[str, Any]) -> bool:
    """Returns whether a text is a whole answer."""
    try:
        jsonschema.validate(json.loads(text), schema)
    except (ValueError, jsonschema.ValidationError):
        return False
    return True


def main() -> None:
    """Measures, and prints a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9, help="batches of each engine (9)")
    parser.add_argument("--tokens", type=int, default=128, help="most tokens of an answer (128)")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch (1)")
    parser.add_argument("--output", type=Path, help="where the numbers go")
    options = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    torch.set_num_threads(options.threads)
    found = measure(options.rounds, options.tokens)
    table = Table("engine", "µs per step", "times ours", "ms in all", "valid", title="eight answers, eight schemas")
    ours = found["constrain"].steps
    report: dict[str, Any] = {}
    for name, measured in found.items():
        whole = statistics.median(measured.whole)
        entry: dict[str, Any] = {"ms_in_all": whole}
        cells = ["", ""]
        if measured.steps:
            pairs = zip(measured.steps, ours, strict=True)
            entry |= {
                "us_per_step": statistics.median(measured.steps),
                "times_ours": statistics.median(one / other for one, other in pairs),
                "valid": measured.valid,
                "answers": measured.answers,
            }
            cells = [f"{entry['us_per_step']:,.0f}", f"{entry['times_ours']:.2f}"]
        table.add_row(name, *cells, f"{whole:.2f}", f"{measured.valid} of {measured.answers}" if measured.steps else "")
        report[name] = {**entry, "rounds": asdict(measured)}
    Console().print(table)
    if options.output is not None:
        versions = {name: version(name) for name in ("torch", "transformers", "xgrammar", "llguidance")}
        about = {**origin(), "versions": versions, "tokens": options.tokens, "threads": options.threads}
        options.output.write_text(json.dumps({**about, "engines": report}, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
