"""Certificates of answers: made, checked, tampered with, and what they cost.

    python benchmarks/certificates.py answers --count 2000 --output answers.jsonl
    python benchmarks/certificates.py walks --count 5000 --output walks.jsonl
    python benchmarks/certificates.py verify answers.jsonl walks.jsonl
    python benchmarks/certificates.py tamper answers.jsonl --count 20000
    python benchmarks/certificates.py cost --count 50

Schemas and tools are those of ``CONSTRAIN_DATA``.

    answers  certificates of what the model writes, one a line: schemas of MaskBench, ready grammars, calls of tools,
             and compositions, in turn
    walks    certificates of random walks over masks, without a model: each token is drawn from all that are allowed, or
             from the shortest completion
    verify   checks all certificates with ``constrain.verify``, which shares no code with the engine, and takes the time
    tamper   changes one thing in a certificate, and judges it as a third party can: by ``constrain.verify``, by the
             vocabulary, and by compiling the source again. Everything must be refused, with its place. What is not
             refused is right all the same: another answer that the engine accepts, too, or the same language
             Facts that no grammar knows, such as the prompt, are tampered with in signed certificates (if the
             cryptography package is installed): without a signature, anyone can change them and make new hashes
    cost     answers with and without a certificate, by the same seed

``--report FILE`` adds a result to a JSON file.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import json
import lzma
import os
import re
import statistics
import tempfile
import time
from collections import Counter
from contextlib import redirect_stdout
from functools import lru_cache
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
from about import origin

import constrain
from constrain import grammars, verify
from constrain.certificates.certificate import certify
from constrain.certificates.export import grammar_to_json
from constrain.certificates.signing import sign, verify_signature
from constrain.engine.compiling import compile_any, describe_source
from constrain.engine.constraint import Constraint
from constrain.generation.observers.certificate.sources import grammar_of_source, source_to_json
from constrain.llama.model import default_model_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Certificate = dict[str, Any]
    Tampering = Callable[["Workshop", Certificate, Random], "Certificate | None"]

MAX_TOKENS = 200
"""Budget of one answer."""

MAX_GRAMMAR = 400_000
"""Characters of a grammar in a certificate; a certificate with a larger one is written, but not tampered with."""

CHAIN = 5
"""Certificates of one chain."""

PLACE = re.compile(
    r"step \d+ of the derivation, at byte \d+|\w+: number \d+ is malformed"
    r"|hash of the (certificate|grammar)|tokens (?:do not )?spell|budget of"
    r"|another .*before|no constrain certificate|the format|the signature|token \d+"
    r"|the grammar is not that of the source|the source"
)
"""What a refusal names: a step and a byte, a token, a hash, the budget, the chain, or the source."""


# Answers


def tasks(seed: int) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yields kinds of prompts, prompts, and options of ``complete``: schemas, tools, grammars, compositions in turn."""
    data, rng = Path(os.environ["CONSTRAIN_DATA"]), Random(seed)
    with lzma.open(data / "maskbench-dev.jsonl.xz") as lines:
        schemas = [json.loads(line)["schema"] for line in lines]
    with lzma.open(data / "accuracy-dev.jsonl.xz") as lines:
        calls = [task for line in lines if (task := json.loads(line))["task"] == "call"]
    rng.shuffle(schemas)
    rng.shuffle(calls)
    ready = itertools.cycle(grammars.names())
    for schema, call in zip(schemas, itertools.cycle(calls), strict=False):
        yield "schema", "Write an example.", {"schema": schema}
        if rng.random() < 0.3:
            yield "tools", call["messages"], {"tools": call["tools"]}
        if rng.random() < 0.2:
            yield "grammar", "Write an example.", {"schema": grammars.load(next(ready))}
        if rng.random() < 0.1:
            answer = {"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer"}}}
            yield "composition", "Who are you?", {"schema": constrain.parts.sequence("My data: ", answer, ".")}


def answers(arguments: argparse.Namespace) -> dict[str, Any]:
    """Writes certificates of the model's answers."""
    path = str(arguments.model or default_model_path())
    model, found = constrain.Model(path, n_ctx=2048, n_threads=arguments.threads), Counter[str]()
    with arguments.output.open("a") as lines:
        for number, (kind, prompt, options) in enumerate(tasks(arguments.seed)):
            if sum(found[name] for name in found if not name.endswith(")")) >= arguments.count:
                break
            settings = {"max_tokens": MAX_TOKENS, "temperature": 0.8, "seed": number, "certificate": True}
            try:
                answer = constrain.complete(model, prompt, **settings, **options)
            except constrain.ConstrainError as error:  # a schema that is refused, or a budget that is too small
                found[f"{kind} ({type(error).__name__})"] += 1
                continue
            if answer.certificate is None:
                found[f"{kind} (beyond a limit)"] += 1
                continue
            found[kind] += 1
            lines.write(json.dumps(answer.certificate) + "\n")
            lines.flush()
            if number % 50 == 0:
                print(dict(found), flush=True)
    return {"answers": dict(found)}


def walks(arguments: argparse.Namespace) -> dict[str, Any]:
    """Writes certificates of random walks."""
    vocabulary, found, rng = _vocabulary(arguments), Counter[str](), Random(arguments.seed)
    with arguments.output.open("a") as lines:
        for kind, _, options in tasks(arguments.seed):
            if found["walks"] >= arguments.count:
                break
            if "schema" not in options:
                continue
            try:
                constraint = compile_any(options["schema"], vocabulary, close_objects=False, cache=False)
            except constrain.ConstrainError as error:
                found[f"{kind} ({type(error).__name__})"] += 1
                continue
            described = source_to_json(describe_source(options["schema"], vocabulary, close_objects=False))
            for _ in range(arguments.walks):
                if (walk := walked(constraint, rng)) is None:
                    found[f"{kind} (does not fit)"] += 1
                    break
                tokens, needed, limit = walk
                facts = {"source": described}
                certificate = certify(constraint, tokens, max_tokens=limit, needed=needed, facts=facts)
                lines.write(json.dumps(certificate) + "\n")
                found["walks"] += 1
    return {"walks": dict(found)}


def walked(constraint: Constraint, rng: Random) -> tuple[list[int], list[int], int] | None:
    """Returns tokens of a random text, tokens needed after each, and the budget; None if no text fits."""
    try:
        matcher = constraint.matcher(MAX_TOKENS)
    except constrain.BudgetError:
        return None
    row, ends = constraint.allocate_bitmask()[0], set(constraint.vocabulary.eos)
    tokens, needed, haste = [], [matcher.min_tokens_left], rng.random()
    while not matcher.is_finished:
        if rng.random() < haste and (completion := matcher.completion_tokens()):
            token = completion[0]
        else:
            matcher.fill_bitmask(row)
            allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
            token = int(rng.choice(allowed))
        if token in ends or (matcher.is_accepting and rng.random() < 0.1):
            break
        if not matcher.accept(token):
            raise RuntimeError(matcher.explain(token))
        tokens.append(token)
        needed.append(matcher.min_tokens_left)
    if not matcher.is_accepting:  # the grammar reads an end of generation of its own
        return None
    return tokens, needed, MAX_TOKENS


# Checks


def check(arguments: argparse.Namespace) -> dict[str, Any]:
    """Verifies all certificates."""
    seconds, tokens, sizes, refused = [], 0, [], []
    for number, certificate in enumerate(read(arguments.files)):
        begin = time.perf_counter()
        try:
            verify.verify(certificate)
        except ValueError as error:
            refused.append(f"{number}: {error}")
        seconds.append(time.perf_counter() - begin)
        tokens += len(certificate["tokens"])
        sizes.append(len(json.dumps(certificate)))
    for line in refused[:20]:
        print(line)
    return {
        "certificates": len(seconds),
        "refused": len(refused),
        "tokens": tokens,
        "milliseconds": percentiles([1e3 * each for each in seconds]),
        "kilobytes": percentiles([each / 1e3 for each in sizes]),
    }


def read(files: Sequence[Path]) -> Iterator[Certificate]:
    """Yields the certificates in files."""
    for path in files:
        with path.open() as lines:
            yield from map(json.loads, lines)


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Returns the median, 99th percentile and maximum."""
    return {f"p{at}": round(float(np.percentile(values, at)), 2) for at in (50, 99, 100)}


# Tampering


class Workshop:
    """All that forgers and judges have: the certificates, the vocabulary, and the compiler."""

    def __init__(self, files: Sequence[Path], vocabulary: constrain.Vocabulary) -> None:
        found = [each for each in read(files) if len(json.dumps(each["grammar"])) <= MAX_GRAMMAR and each["tokens"]]
        if len(found) < 2:
            raise ValueError("there are too few certificates")
        self.vocabulary = vocabulary
        fingerprint = vocabulary.fingerprint.hex()
        if any(each["vocabulary"]["sha256"] != fingerprint for each in found):
            raise ValueError("a certificate is of another vocabulary")
        self.certificates = found
        self.by_length: dict[int, list[int]] = {}
        for token in range(vocabulary.n_vocab):
            if text := vocabulary.token_bytes(token):
                self.by_length.setdefault(len(text), []).append(token)
        self.private_key, self.public_key = key_pair() if find_spec("cryptography") else (None, b"")
        self.constraint = lru_cache(maxsize=64)(self._constraint)
        self.hash_of_source = lru_cache(maxsize=256)(self._hash_of_source)

    def _constraint(self, source: str) -> Constraint:
        return Constraint(grammar_of_source(json.loads(source)), self.vocabulary, {}, ())

    def _hash_of_source(self, source: str) -> str:
        return verify.digest(grammar_to_json(grammar_of_source(json.loads(source)), self.vocabulary))

    def entry(self, token: int) -> list[Any]:
        """Returns a token as certificates write it."""
        text = self.vocabulary.token_bytes(token)
        try:
            return [token, text.decode()]
        except UnicodeDecodeError:
            return [token, {"hex": text.hex()}]

    def refusal(self, certificate: Certificate) -> str | None:
        """Returns why a certificate is refused; None if it holds."""
        try:
            verify.verify(certificate)
            if "signature" in certificate:
                verify_signature(certificate, self.public_key)
            for number, (token, text, *name) in enumerate(certificate["tokens"]):
                if not name and (
                    not 0 <= token < self.vocabulary.n_vocab or self.vocabulary.token_bytes(token) != verify.data(text)
                ):
                    return f"token {number} has another text in the vocabulary"
            if self.hash_of_source(json.dumps(certificate["source"])) != certificate["grammar_sha256"]:
                return "the grammar is not that of the source"
        except constrain.ConstrainError as error:
            return f"the source cannot be compiled: {error}"
        except ValueError as error:
            return str(error)
        return None

    def accepts(self, certificate: Certificate) -> bool:
        """Whether the engine accepts the tokens of a certificate, within its budget."""
        matcher = self.constraint(json.dumps(certificate["source"])).matcher(certificate["budget"]["max_tokens"])
        tokens = [token for token, *_ in certificate["tokens"]]
        return matcher.accept_many(tokens) == len(tokens) and (matcher.is_accepting or matcher.is_finished)


def key_pair() -> tuple[bytes, bytes]:
    """Returns a new private key and its public key, in PEM."""
    from cryptography.hazmat.primitives import serialization as s
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())
    return private, key.public_key().public_bytes(s.Encoding.PEM, s.PublicFormat.SubjectPublicKeyInfo)


def sealed(certificate: Certificate) -> Certificate:
    """Returns a certificate with all hashes made again, as a forger does."""
    certificate["grammar_sha256"] = verify.digest(certificate["grammar"])
    source = {name: value for name, value in certificate["source"].items() if name != "sha256"}
    certificate["source"] = {**source, "sha256": verify.digest(source)}
    body = {name: value for name, value in certificate.items() if name not in ("sha256", "signature")}
    return {**certificate, "sha256": verify.digest(body)}


def spelled(certificate: Certificate) -> Certificate:
    """Returns a certificate whose text is that of its tokens, and whose record of the budget has their number."""
    texts = b"".join(verify.data(text) for _, text, *_ in certificate["tokens"])
    try:
        certificate["text"] = texts.decode()
    except UnicodeDecodeError:
        certificate["text"] = {"hex": texts.hex()}
    count = len(certificate["tokens"])
    certificate["budget"] = {"max_tokens": certificate["budget"]["max_tokens"], "needed": [0] * (count + 1)}
    return certificate


def other_token(shop: Workshop, made: Certificate, rng: Random) -> Certificate | None:
    """Another token of the same length, the text with it."""
    number = rng.randrange(len(made["tokens"]))
    length = len(verify.data(made["tokens"][number][1]))
    chosen = rng.choice(shop.by_length.get(length, shop.by_length[1]))
    if chosen == made["tokens"][number][0]:
        return None
    made["tokens"][number] = shop.entry(chosen)
    return sealed(spelled(made))


def text_byte(_: Workshop, made: Certificate, rng: Random) -> Certificate:
    """Another byte of the text, in the token, too."""
    number = rng.randrange(len(made["tokens"]))
    text = bytearray(verify.data(made["tokens"][number][1]) or b"x")
    at = rng.randrange(len(text))
    text[at] = rng.choice([byte for byte in b'{}[]":,0123456789abzAZ. -\\' if byte != text[at]])
    try:
        made["tokens"][number][1] = text.decode()
    except UnicodeDecodeError:
        made["tokens"][number][1] = {"hex": text.hex()}
    return sealed(spelled(made))


def text_alone(_: Workshop, made: Certificate, rng: Random) -> Certificate:
    """Another byte of the text, but not in the tokens."""
    text = bytearray(verify.data(made["text"]))
    text.insert(rng.randrange(len(text) + 1), ord("~"))
    made["text"] = {"hex": bytes(text).hex()}
    return sealed(made)


def token_left_out(_: Workshop, made: Certificate, rng: Random) -> Certificate:
    """A token is gone, and its text."""
    del made["tokens"][rng.randrange(len(made["tokens"]))]
    return sealed(spelled(made))


def token_twice(_: Workshop, made: Certificate, rng: Random) -> Certificate:
    """A token stands twice, and its text."""
    number = rng.randrange(len(made["tokens"]))
    made["tokens"].insert(number, made["tokens"][number])
    return sealed(spelled(made))


def span(_: Workshop, made: Certificate, rng: Random) -> Certificate | None:
    """A lexeme ends elsewhere."""
    steps = [step for step in made["derivation"] if isinstance(step, list)]
    if not steps:
        return None
    rng.choice(steps)[1] += rng.choice((-2, -1, 1, 2))
    return sealed(made)


def edge(_: Workshop, made: Certificate, rng: Random) -> Certificate:
    """Another edge of the rule is taken."""
    steps, number = made["derivation"], rng.randrange(len(made["derivation"]))
    shift = rng.choice((-2, -1, 1, 2))
    if isinstance(steps[number], list):
        steps[number][0] += shift
    else:
        steps[number] += shift
    return sealed(made)


def step(_: Workshop, made: Certificate, rng: Random) -> Certificate | None:
    """A step is left out, doubled, or exchanged with another."""
    steps, number = made["derivation"], rng.randrange(len(made["derivation"]))
    way = rng.randrange(3)
    if way == 0:
        del steps[number]
    elif way == 1:
        steps.insert(number, steps[number])
    else:
        other = rng.randrange(len(steps))
        if steps[number] == steps[other]:
            return None
        steps[number], steps[other] = steps[other], steps[number]
    return sealed(made)


def budget(_: Workshop, made: Certificate, rng: Random) -> Certificate:
    """The limit is lower than the answer is long, or the record says that tokens were missing."""
    count = len(made["tokens"])
    if rng.random() < 0.5:
        made["budget"]["max_tokens"] = rng.randrange(count)
    elif made["budget"]["needed"] and rng.random() < 0.5:
        made["budget"]["needed"][rng.randrange(len(made["budget"]["needed"]))] += MAX_TOKENS + 1
    else:
        made["budget"]["needed"] = [0] * (count + 2)
    return sealed(made)


def grammar(_: Workshop, made: Certificate, rng: Random) -> Certificate:
    """Another edge, terminal or expression in the grammar."""
    way, rules = rng.randrange(4), made["grammar"]["rules"]
    if way == 0:
        rule = rng.choice(rules)
        rule["accepting"] = [*rule["accepting"], max(rule["accepting"], default=0) + 1]
    elif way == 1:
        rule = rng.choice([each for each in rules if each["edges"]])
        changed = rng.choice(rule["edges"])
        changed[rng.choice((0, 2))] += 1
    elif way == 2:
        made["grammar"]["terminals"][rng.randrange(len(made["grammar"]["terminals"]))]["expression"] = 0
    else:
        made["grammar"]["ignored"] = [*made["grammar"]["ignored"], 0]
    return sealed(made)


def grammar_of_another(shop: Workshop, made: Certificate, rng: Random) -> Certificate | None:
    """The grammar of another certificate."""
    other = rng.choice(shop.certificates)["grammar"]
    if other == made["grammar"]:
        return None
    return sealed({**made, "grammar": other})


def policy(_: Workshop, made: Certificate, rng: Random) -> Certificate | None:
    """Another policy of the schema."""
    source = made["source"]
    if source["kind"] != "json_schema":
        return None
    others = {"whitespace": "any", "property_order": "any", "formats": "annotation", "numbers": "any", "escapes": "any"}
    name = rng.choice([*others, "close_objects"])
    if name == "close_objects":
        source[name] = not source[name]
    else:
        source["policies"][name] = others[name]
    return sealed(made)


def source_text(shop: Workshop, made: Certificate, rng: Random) -> Certificate | None:
    """Another source: that of another certificate, or a number of the schema."""
    if made["source"]["kind"] == "json_schema" and (numbers := [*re.finditer(r"\d+", made["source"]["text"])]):
        found, text = rng.choice(numbers), made["source"]["text"]
        made["source"]["text"] = text[: found.start()] + str(int(found[0]) + 1) + text[found.end() :]
        return sealed(made)
    other = rng.choice(shop.certificates)["source"]
    return None if other == made["source"] else sealed({**made, "source": other})


def unsealed(_: Workshop, made: Certificate, rng: Random) -> Certificate:
    """Any value anywhere, with the old hash."""
    node: Any = made
    while True:
        name = rng.choice(list(node) if isinstance(node, dict) else range(len(node)))
        inner = node[name]
        if isinstance(inner, dict | list) and inner and rng.random() < 0.9:
            node = inner
            continue
        node[name] = inner + 1 if isinstance(inner, int) else f"{inner}~" if isinstance(inner, str) else [inner, 0]
        return made


def hash_of_grammar(_: Workshop, made: Certificate, rng: Random) -> Certificate:
    """Another hash of the grammar, or another grammar under its hash."""
    if rng.random() < 0.5:
        made["grammar_sha256"] = made["grammar_sha256"][::-1]
    else:
        made["grammar"]["ignored"] = [*made["grammar"]["ignored"], 0]
    body = {name: value for name, value in made.items() if name not in ("sha256", "signature")}
    return {**made, "sha256": verify.digest(body)}


def facts(shop: Workshop, made: Certificate, rng: Random) -> Certificate | None:
    """Another fact in a signed certificate, with the old signature."""
    if shop.private_key is None:
        return None
    signature = sign(made, shop.private_key)["signature"]
    way = rng.randrange(5)
    if way == 0 and made["budget"]["max_tokens"] is not None:
        made["budget"]["max_tokens"] += 1
    elif way == 1:
        made["vocabulary"]["size"] += 1
    elif way == 2:
        made["prompt"] = {"sha256": "0" * 64, "count": 1}
    elif way == 3:
        made["model"] = {"name": "another"}
    else:
        made["previous"] = "0" * 64
    return sealed({**made, "signature": signature})


TAMPERINGS: dict[str, Tampering] = {
    each.__name__: each
    for each in (
        other_token,
        text_byte,
        text_alone,
        token_left_out,
        token_twice,
        span,
        edge,
        step,
        budget,
        grammar,
        grammar_of_another,
        policy,
        source_text,
        unsealed,
        hash_of_grammar,
        facts,
    )
}
SAME_ANSWER = {"span", "edge", "step"}
"""Tamperings that leave text and tokens alone: if one holds, the answer has a second derivation."""

SAME_LANGUAGE = {"grammar", "grammar_of_another", "policy", "source_text"}
"""Tamperings after which source and grammar may still be those of each other."""


def tamper(arguments: argparse.Namespace) -> dict[str, Any]:
    """Makes and judges tampered certificates."""
    shop, rng = Workshop(arguments.files, _vocabulary(arguments)), Random(arguments.seed)
    counts: dict[str, Counter[str]] = {name: Counter() for name in [*TAMPERINGS, "chain"]}
    wrong, places, made = [], Counter[str](), 0
    order = itertools.cycle(name for name in TAMPERINGS if name != "facts" or shop.private_key is not None)
    while made < arguments.count * 19 // 20:
        name, number = next(order), rng.randrange(len(shop.certificates))
        forged = TAMPERINGS[name](shop, copy.deepcopy(shop.certificates[number]), rng)
        if forged is None or forged == shop.certificates[number]:
            continue
        made += 1
        reason = shop.refusal(forged)
        verdict = outcome(shop, name, forged, reason)
        counts[name][verdict] += 1
        if reason is not None and (place := PLACE.search(reason)):
            places[re.sub(r"\d+", "N", place[0])] += 1
        if verdict in ("accepted", "refused without a place"):
            wrong.append(f"{name} of certificate {number}: {verdict}: {reason}")
    for _ in range(arguments.count - made):
        verdict = broken_chain(shop, rng)
        counts["chain"][verdict] += 1
        if verdict != "refused":
            wrong.append(f"chain: {verdict}")
    for line in wrong[:40]:
        print(line[:300])
    total = sum(counts.values(), Counter())
    return {
        "tampered": dict(total),
        "places": dict(places.most_common()),
        "by": {name: dict(each) for name, each in counts.items()},
        "wrong": wrong[:40],
    }


def outcome(shop: Workshop, name: str, forged: Certificate, reason: str | None) -> str:
    """Returns the outcome of one tampered certificate; independent of the verifier where it was not refused."""
    if reason is not None:
        return "refused" if PLACE.search(reason) else "refused without a place"
    if not shop.accepts(forged):
        return "accepted"
    if name in SAME_ANSWER:
        return "same answer, derived otherwise"
    if name in SAME_LANGUAGE:
        return "same language"
    return "another answer of the language" if name != "unsealed" else "accepted"


def broken_chain(shop: Workshop, rng: Random) -> str:
    """Makes a chain of certificates, takes one out of its middle, or exchanges two; returns the outcome."""
    rows, before = [], None
    for number in rng.sample(range(len(shop.certificates)), min(CHAIN, len(shop.certificates))):
        rows.append(sealed({**shop.certificates[number], "previous": before}))
        before = rows[-1]["sha256"]
    at = rng.randrange(1, len(rows) - 1)
    if rng.random() < 0.5:
        del rows[at]
    else:
        rows[at], rows[at + 1] = rows[at + 1], rows[at]
    with tempfile.TemporaryDirectory() as folder, redirect_stdout(StringIO()) as printed:
        paths = [Path(folder) / f"row{index}.json" for index in range(len(rows))]
        for path, row in zip(paths, rows, strict=True):
            path.write_text(json.dumps(row))
        status = verify.main([str(path) for path in paths])
    if status == 0:
        return "accepted"
    return "refused" if re.search(rf"row{at}\.json: .*refused: .*before", printed.getvalue()) else "refused elsewhere"


# Cost


def cost(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measures answers with and without a certificate, in turn."""
    model = constrain.Model(str(arguments.model or default_model_path()), n_ctx=2048)
    shares, seconds, tokens = [], {True: [], False: []}, 0
    for number, (_, prompt, options) in enumerate(tasks(arguments.seed)):
        if len(shares) >= arguments.count:
            break
        found: dict[bool, float] = {}
        try:
            for certificate in (False, False, True) if number % 2 else (False, True, False):  # the first one compiles
                settings = {"max_tokens": MAX_TOKENS, "seed": number, "certificate": certificate}
                begin = time.perf_counter()
                answer = constrain.complete(model, prompt, **settings, **options)
                found[certificate] = time.perf_counter() - begin
        except constrain.ConstrainError:
            continue
        tokens += len(answer.tokens)
        shares.append(found[True] / found[False] - 1)
        for certificate, taken in found.items():
            seconds[certificate].append(taken)
    return {
        "answers": len(shares),
        "tokens": tokens,
        "seconds_without": round(sum(seconds[False]), 2),
        "seconds_with": round(sum(seconds[True]), 2),
        "median_share": round(statistics.median(shares), 4),
    }


def _vocabulary(arguments: argparse.Namespace) -> constrain.Vocabulary:
    return constrain.Vocabulary.from_gguf(str(arguments.model or default_model_path()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, run in {"answers": answers, "walks": walks, "verify": check, "tamper": tamper, "cost": cost}.items():
        command = commands.add_parser(name)
        command.set_defaults(run=run)
        command.add_argument("--model", type=Path, help="a GGUF file (the default model)")
        command.add_argument("--seed", type=int, default=0)
        command.add_argument("--report", type=Path, help="JSON file that the result is added to")
        command.add_argument("--count", type=int, default={"tamper": 20_000, "cost": 50}.get(name, 1_000))
        if name in ("answers", "walks"):
            command.add_argument("--output", type=Path, required=True)
        if name == "answers":
            command.add_argument("--threads", type=int, help="threads of the model (one for each core)")
        if name == "walks":
            command.add_argument("--walks", type=int, default=5, help="walks of one grammar (default: %(default)s)")
        if name in ("verify", "tamper"):
            command.add_argument("files", type=Path, nargs="+")
    arguments = parser.parse_args()
    found = arguments.run(arguments)
    print(json.dumps(found, indent=1))
    if arguments.report:
        report = json.loads(arguments.report.read_text()) if arguments.report.exists() else {}
        report.update({**origin(), arguments.command: found})
        arguments.report.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
