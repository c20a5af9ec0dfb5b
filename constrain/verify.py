"""Checks certificates of answers: ``python verify.py FILE ...``, alone; with ``jsonschema`` too, if it is installed."""

import sys

sys.path[:] = [each for each in sys.path if __name__ != "__main__" or not each.endswith("constrain")]  # has ``types``

import hashlib
import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from importlib import import_module, util
from itertools import accumulate
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

FORMAT = "constrain certificate 1"
NUMBER = re.compile(rb"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
WIDE = rb"[\xc2-\xdf][\x80-\xbf]|(?:\xe0[\xa0-\xbf]|\xed[\x80-\x9f]|[\xe1-\xec\xee\xef][\x80-\xbf])[\x80-\xbf]"
WIDE += rb"|(?:\xf0[\x90-\xbf]|\xf4[\x80-\x8f]|[\xf1-\xf3][\x80-\xbf])[\x80-\xbf]{2}"
CHARACTER = re.compile(rb"[\x00-\x7f]|" + WIDE)
SPELLED = re.compile(rb'\\(?:["\\bfnrt]|u00(?:0[0-7bef]|1[0-9a-f]))|[^\x00-\x1f"\\\x80-\xff]|' + WIDE)
LONGEST = len(rb"\u0000")  # bytes of a character
SCALAR, LABEL, ORDERED, LABELLED, CLOSE = 1, 2, 3, 4, 5
MOST_WORK, MOST_KNOWN = 5 * 10**7, 10**5  # rests that one lexeme may go through; states that are remembered
INNER = {"not": 1, "repeat": 1, "window": 2}  # how many expressions are in one
BEGIN = {
    "class": b"",
    "table": b"",
    "multiple": (-2, 0),
    "substring": (b"", None, 0),
}  # what they keep before the first byte
State = frozenset[Any]
Tables = Mapping[str, Sequence[bytes]]
NO_TABLES: Tables = {}
TYPES = {"[": r"\[", "]": r"\]", "{": r"\{", "}": r"\}", "<": r"\[(?:", ">": r"(?:,|(?=\])))*\]"}  # <N>: array of N
TYPES |= {"N": "[0-9]+", "Z": "-?[0-9]+", "M": "(?:[0-9]+|null)", "I": "(?:[0-9]+|-1)", "F": "(?:true|false)"}
TYPES |= {"S": r'"(?:[^"\\]|\\.)*"', "B": r'(?:"(?:[^"\\]|\\.)*"|\{"hex":"(?:[0-9a-fA-F]{2})+"\})', "R": "[0-5]"}
TYPES["H"] = '"(?:[0-9a-fA-F]{2})+"'
EDGE = "[N,(?:N,N,<[N,N,M]>,<[(?:0|1),N]>,I,I|-N,N,<[N,N,M]>,<[0,N]>,-1,I|null,N,<[N,N,M]>,<[0,N]>,-1,-1)]"
RULE = '{"accepting":<N>,"edges":<' + EDGE + '>(?:,"max_tokens":N)?,"slots":<(?:N|-1|-2)>}'
TERMINAL = '{"expression":N(?:,"label":B)?(?:,"lazy":F)?(?:,"max_tokens":N)?(?:,"role":R)?(?:,"tokens":<[N,N]>)?}'
EXPRESSION = '[(?:"(?:all|any)",<N>|"both",[N(?:,N)*]|"not",N|"repeat",N,N,M|"class",<[N,N]>,"(?:byte|char|json)"'
EXPRESSION += (
    '|"literal",<B>|"table",S,N|"multiple",(?!0)N,N|"window",N,N,N,M|"substring",<S>,N,M,"(?:char|json)",<"(?:0|1)*">)]'
)
SHAPES = {"tokens": '(?:[N,(?!"")B]|[N,"",(?!"")S])', "derivation": "(?:Z|[Z,Z])", "vocabulary": '{"eos":<N>}'}
SHAPES |= {"budget": '{"max_tokens":M,"needed":<Z>}', "grammar": '{"numbers_by_double":F,"strings_by_value":F}'}
SHAPES |= {"text": '(?:S|{"hex":H})', "previous": "(?:null|S)"}
SHAPES |= {"rules": RULE, "terminals": TERMINAL, "expressions": EXPRESSION, "ignored": "N"}  # of each item, if arrays
PATTERNS = {kind: re.compile("".join(TYPES.get(each, each) for each in shape)) for kind, shape in SHAPES.items()}
SPACES = r"\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"  # of ECMA-262
OTHERS = r"\0-\x08\x0e-\x1f!-\x9f\xa1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e\u2060-\u2fff"
IN_CLASS = {r"\s": SPACES, r"\S": OTHERS + r"\u3001-\ufefe\uff00-\U0010ffff"}  # as Python writes them
IN_CLASS |= {each: f"\\{each}" for each in "[&|~"}
ALONE = {r"\s": f"[{SPACES}]", r"\S": f"[^{SPACES}]", r"\B": r"(?!\b)", ".": r"[^\n\r\u2028\u2029]", "$": r"\Z"}
ALONE |= {"[]": "(?!)", "[^]": "(?s:.)"}
PIECE, MEMBER = re.compile(r"\\.|\[(?:[^\]\\]|\\.)*\]?|[.$]", re.DOTALL), re.compile(r"\\.|[\[&|~]", re.DOTALL)
UNLIKE = re.compile(r"\{,|--|\(\?(?![:=!<])|\\u[dD][89a-fA-F]|\\[sS]-[^]]|(?<!\[)(?<!\[\^)-\\[sS]")
canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def require(holds: object, message: str) -> None:
    """Raises ValueError unless a condition holds: the certificate is refused."""
    if not holds:
        raise ValueError(message)


def digest(value: object) -> str:
    """Returns the SHA-256 of canonical JSON: sorted keys, no white space, ASCII."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def data(written: Any) -> bytes:
    """Returns bytes, which stand as text, or as ``{"hex": ...}`` if they are not UTF-8."""
    return written.encode() if isinstance(written, str) else bytes.fromhex(written["hex"])


def read_table(lines: bytes) -> tuple[str, list[bytes]]:
    """Returns the digest and the values of a table, which are lines, as JSON has them between quotation marks."""
    values = sorted({*lines.removesuffix(b"\n").split(b"\n")})
    return hashlib.sha256(b"".join(value + b"\n" for value in values)).hexdigest(), values


def within(count: int, least: int, most: int | None) -> bool:
    """Returns whether a count is within bounds; None is no bound."""
    return least <= count and (most is None or count <= most)


def code_point(spelled: bytes, how: str) -> int:
    """Returns the code point that bytes spell; -1 if they are not one whole character."""
    if how == "byte":
        return spelled[0]
    if not (CHARACTER if how == "char" else SPELLED).fullmatch(spelled):
        return -1
    return ord(json.loads(b'"%b"' % spelled) if how == "json" else spelled.decode())


class Match:
    """Matches of expressions, byte by byte, by what is left to match (derivatives: Brzozowski 1964, Antimirov 1996).

    A *part* is an expression that is being matched: its number, and what its kind keeps. A *rest* is a row of parts to
    be matched one after the other. A *state* is the set of all rests that may follow the text up to here, which is a
    match itself if there is a rest of which every part may end.
    """

    def __init__(self, nodes: list[Any], tables: Tables = NO_TABLES) -> None:
        self.nodes, self.begun, self.known, self.work = [*nodes], list[Any](), dict[Any, Any](), 0
        for number, (kind, of, *more) in enumerate(nodes):
            if kind == "table":
                is_given = of in tables and len(tables[of]) == more[0]
                require(is_given, f"the table with the digest {of} and {more[0]} values is not given")
                self.nodes[number] = ["table", tables[of]]
            inner = of if kind in ("all", "any", "both") else [of, *more][: INNER.get(kind, 0)]
            require(all(each < number for each in inner), "an expression contains itself")
            kept: Any = BEGIN.get(kind)
            if kind in ("all", "any"):
                parts = tuple(self.begun[each] for each in inner)
                kept = (frozenset([parts] if kind == "all" else zip(parts)),)
            elif kind in ("both", "not", "window"):
                kept = (*map(self.start, inner), *([0] if kind == "window" else []))
            elif kind in ("repeat", "literal"):
                kept = tuple(more) if kind == "repeat" else (0, tuple(map(data, of)))
            self.begun.append((number, kept))

    def start(self, number: int) -> State:
        """Returns the state before the first byte of an expression."""
        return frozenset({(self.begun[number],)})

    def ends(self, number: int, text: bytes) -> Iterator[int]:
        """Yields where matches of an expression end that begin with the text; not the empty one."""
        state, self.work = self.start(number), 0
        for end, byte in enumerate(text, 1):
            if not (state := self.after(state, byte)):
                return
            if self.accepts(state):
                yield end

    def accepts(self, state: State) -> bool:
        """Returns whether the text up to here is a match."""
        if (found := self.known.get(state)) is None:
            found = self.known[state] = any(all(map(self.may_end, rest)) for rest in state)
        return bool(found)

    def after(self, state: State, byte: int) -> State:
        """Returns the state behind a byte."""
        if (found := self.known.get((state, byte))) is None:
            require((work := self.work) < MOST_WORK, "a lexeme takes too many steps")
            rests, self.work = set[Any](), work + len(state)
            for rest in state:
                for at, part in enumerate(rest):
                    rests |= {head + rest[at + 1 :] for head in self.steps(part, byte)}
                    if not self.may_end(part):
                        break
            if len(self.known) > MOST_KNOWN:
                self.known.clear()
            self.known[state, byte] = found = frozenset(rests)
        return cast("State", found)

    def may_end(self, part: Any) -> bool:
        """Returns whether nothing more must follow in a part."""
        number, kept = part
        match self.nodes[number]:
            case ["all" | "any" | "both", _]:
                return all(map(self.accepts, kept))
            case ["not", _]:
                return not self.accepts(kept[0])
            case ["repeat", inner, *_]:
                return within(kept[0], 0, kept[1]) and (kept[0] == 0 or self.accepts(self.start(inner)))
            case ["window", _, _, least, most]:
                return self.accepts(kept[0]) and within(kept[2], least, most)
            case ["literal", _]:
                return any(len(text) == kept[0] for text in kept[1])
            case ["table", lines]:
                return bool(lines[bisect_left(lines, kept) : bisect_left(lines, kept) + 1] == [kept])
            case ["multiple", divisor, scale]:
                missing = max(0, scale - max(0, kept[0] - 1))
                return kept[0] not in (-2, -1, 1) and kept[1] * pow(10, missing, divisor) % divisor == 0
            case ["substring", _, least, most, _, cuts]:
                spelled, places, count = kept
                is_cut = places is None or any(not cuts or cuts[which][at : at + 1] != "0" for which, at in places)
                return not spelled and is_cut and within(count, least, most)
        return kept is True  # a class

    def steps(self, part: Any, byte: int) -> Iterable[Any]:
        """Returns the rests that may follow a byte in a part."""
        number, kept = part
        match self.nodes[number]:
            case ["all" | "any", _]:
                return self.after(kept[0], byte)
            case ["both" | "not" as kind, _]:
                kept = tuple(self.after(state, byte) for state in kept)
                return [((number, kept),)] if kind == "not" or all(kept) else []
            case ["repeat", inner, *_]:
                least, most = kept
                heads = self.after(self.start(inner), byte) if most != 0 and within(least, 0, most) else ()
                return [(*head, (number, (max(0, least - 1), most and most - 1))) for head in heads]
            case ["window", _, unit, least, most]:
                of, units, count = self.after(kept[0], byte), self.after(kept[1], byte), kept[2]
                if self.accepts(units):
                    units, count = self.start(unit), count + (most is not None or count < least)
                return [((number, (of, units, count)),)] if of and within(count, 0, most) else []
            case node:
                return [] if (kept := after_byte(node, kept, byte)) is None else [((number, kept),)]


def after_byte(node: Any, kept: Any, byte: int) -> Any:
    """Returns what an expression without parts keeps behind a byte; None if it does not match."""
    match node:
        case ["literal", _]:
            at, texts = kept
            texts = tuple(text for text in texts if text[at : at + 1] == bytes([byte]))
            return (at + 1, texts) if texts else None
        case ["table", lines]:
            at = bisect_left(lines, text := kept + bytes([byte]))
            return text if at < len(lines) and lines[at].startswith(text) else None
        case ["class", ranges, how] if kept is not True:
            code = code_point(spelled := kept + bytes([byte]), how)
            if any(low <= code <= high for low, high in ranges):
                return True
            return spelled if code < 0 and len(spelled) < LONGEST else None
        case ["multiple", divisor, scale]:
            place, value = kept  # place: -2 at the begin, -1 behind "-", 0 before ".", then 1 and the decimals
            if (place, byte) in ((-2, b"-"[0]), (0, b"."[0])):
                return place + 1, value
            if not (digit := bytes([byte])).isdigit() or (place > scale and (value or digit != b"0")):
                return None
            return min(place + 1, scale + 2) if place > 0 else 0, (10 * value + int(digit)) % divisor
        case ["substring", texts, least, most, how, cuts]:
            spelled, places, count = kept
            require([*map(len, cuts or texts)] == [*map(len, texts)], "cuts of another length")
            if (code := code_point(spelled := spelled + bytes([byte]), how)) < 0:
                return (spelled, places, count) if len(spelled) < LONGEST else None
            if places is None:
                places = [(which, at) for which, text in enumerate(texts) for at in range(len(text))]
                places = [(which, at) for which, at in places if not cuts or cuts[which][at] == "1"]
            places = frozenset((which, at + 1) for which, at in places if texts[which][at : at + 1] == chr(code))
            count += most is not None or count < least
            return (b"", places, count) if places and within(count, 0, most) else None
    return None


class Reader:
    """A derivation that is being read: the rules under way, their memory, and the values of open groups."""

    def __init__(self, certificate: dict[str, Any], tables: Tables) -> None:
        self.grammar, self.tokens = certificate["grammar"], certificate["tokens"]
        for kind, pattern in PATTERNS.items():
            whole = (
                self.grammar[kind] if kind in ("expressions", "ignored", "rules", "terminals") else certificate[kind]
            )
            for number, part in enumerate(whole if isinstance(whole, list) else [whole]):
                known = {n: part[n] for n in part if f'"{n}":' in SHAPES[kind]} if isinstance(part, dict) else part
                require(pattern.fullmatch(canonical(known)), f"{kind}: number {number} is malformed")
        tokens = [(token, data(written), *name) for token, written, *name in self.tokens]
        known = {each[0]: each for each in tokens}
        for number, each in enumerate(tokens):
            require(known[each[0]] == each, f"token {number} has another text elsewhere")
        require(b"".join(text for _, text, *_ in tokens) == data(certificate["text"]), "the tokens spell another text")
        parts = [text or b"\xff" + name[0].encode() + b"\xfe" for _, text, *name in tokens]
        self.text, self.at, self.step, self.matched = b"".join(parts), 0, 0, dict[tuple[int, bytes], bool]()
        self.starts = {start: number for number, start in enumerate(accumulate(map(len, parts), initial=0))}
        self.places, self.match = list(self.starts), Match(self.grammar["expressions"], tables)
        self.groups: list[list[Any]] = [[ORDERED, None, []]]  # kind, label of the next member, members

    def read(self, steps: list[Any]) -> None:
        """Reads all steps, and so the whole text. Raises ValueError, and errors of Python for malformed steps."""
        stack = [self._begun(0, -1)]
        for self.step, step in enumerate(steps):
            rule, state, _, begin, distinct = stack[-1]
            index, end = step if isinstance(step, list) else (step, None)
            if index >= 0:
                self._edge(stack, rule["edges"][index], end)
            elif end is not None:
                require(~index in self.grammar["ignored"], f"terminal {~index} is not ignored")
                self._lexeme(~index, end)
            else:
                require(
                    index == -1 and state in rule["accepting"], f"rule {rule.get('name')} cannot end in state {state}"
                )
                if (most := rule.get("max_tokens")) is not None:
                    fits = {begin, self.at} <= self.starts.keys() and self.starts[self.at] <= self.starts[begin] + most
                    require(fits, f"rule {rule.get('name')} is not {most} whole tokens or less")
                stack.pop()
                if distinct >= 0:
                    known, value = stack[-1][2][distinct], self.groups[-1][2][-1]
                    require(value not in known, "a value stands there again")
                    known[value] = True
        require(not stack and self.at == len(self.text), "the derivation ends before the text")

    def _begun(self, rule: int, distinct: int) -> list[Any]:
        made = self.grammar["rules"][rule]
        return [made, 0, [0 if cap >= 0 else {} if cap < -1 else set() for cap in made["slots"]], self.at, distinct]

    def _edge(self, stack: list[list[Any]], edge: list[Any], end: int | None) -> None:
        source, symbol, target, conditions, actions, excluding, distinct = edge
        (rule, state, memory, _, _), begin = stack[-1], self.at
        require(source == state, f"the edge begins in state {source} of rule {rule.get('name')}, not in {state}")
        for slot, least, most in conditions:
            require(least <= memory[slot] and (most is None or memory[slot] <= most), f"counter {slot} is out of range")
        require((end is not None) == (symbol is not None and symbol >= 0), "the edge and the step differ in kind")
        if end is not None:
            self._lexeme(symbol, end)
            self._add_to_value(self.grammar["terminals"][symbol], self.text[begin:end])
            text, value = self.common(self.text[begin:end]), self.common(self.text[begin:end], by_value=True)
            require(excluding < 0 or not {text} & memory[excluding], "a text stands there again")
            if distinct >= 0:
                require(value not in memory[distinct], "a value stands there again")
                memory[distinct][value] = True
        for action, slot in actions:
            if action:
                memory[slot].add(text)
            else:
                memory[slot] = min(memory[slot] + 1, rule["slots"][slot])
        stack[-1][1] = target
        if symbol is not None and symbol < 0:
            stack.append(self._begun(~symbol, distinct))

    def _lexeme(self, index: int, end: Any) -> None:
        terminal, begin = self.grammar["terminals"][index], self.at
        require(begin < end <= len(self.text), f"no lexeme ends at {end}")
        text, ids, most = self.text[begin:end], terminal.get("tokens"), terminal.get("max_tokens")
        if ids is not None:  # one whole token, of those with these ids
            number = self.starts.get(begin, -2)
            token = self.tokens[number][0] if self.starts.get(end) == number + 1 else -1
            self.matched[index, text] = any(low <= token <= high for low, high in ids)
        elif (index, text) not in self.matched:
            ends = list(self.match.ends(terminal["expression"], text))
            is_match = (ends if terminal.get("lazy") else ends[-1:]) == [len(text)]
            self.matched[index, text] = is_match and not {0xFE, 0xFF} & {*text}
        require(self.matched[index, text], f"terminal {terminal.get('name')} does not match {text!a:.80}")
        count = bisect_left(self.places, end) - bisect_left(self.places, begin)
        require(most is None or count <= most, f"more than {most} tokens")
        self.at = end

    def common(self, text: bytes, *, by_value: bool = False) -> object:
        """Returns what texts that count as equal have in common; ``by_value``: also all texts of a number."""
        if not by_value or not NUMBER.fullmatch(text):
            string = STRING.match(text) if self.grammar["strings_by_value"] else None
            return (json.loads(string[0].decode(), strict=False), text[string.end() :]) if string else text
        is_double = self.grammar["numbers_by_double"] and abs(float(text)) < float("inf")
        return float(text) if is_double else Decimal(text.decode())

    def _add_to_value(self, terminal: dict[str, Any], text: bytes) -> None:
        role, group = terminal.get("role", SCALAR), self.groups[-1]
        if role in (ORDERED, LABELLED):
            self.groups.append([role, None, []])
        elif role == LABEL:
            group[1] = self.common(data(terminal["label"]) if "label" in terminal else text)
        elif role == SCALAR or (role == CLOSE and len(self.groups) > 1):
            value = self.common(text, by_value=True) if role == SCALAR else ()
            if role == CLOSE:
                kind, _, members = self.groups.pop()
                value, group = (kind, frozenset(enumerate(members) if kind == ORDERED else members)), self.groups[-1]
            group[2].append((group[1], value) if group[0] == LABELLED else value)


def verify(certificate: Any, previous: str | None = None, tables: Tables = NO_TABLES) -> str:
    """Checks one certificate and returns its hash. Raises ValueError, and errors of Python for malformed ones.

    ``previous``: hash of the certificate before it. ``tables``: sorted values by digest (``read_table``).
    """
    body = {name: value for name, value in certificate.items() if name not in ("sha256", "signature")}
    require(body["format"] == FORMAT, f"the format is not {FORMAT!r}")
    require(certificate["sha256"] == digest(body), "the hash of the certificate does not agree")
    require(body["grammar_sha256"] == digest(body["grammar"]), "the hash of the grammar does not agree")
    source = dict(body.get("source") or {})
    require(source.pop("sha256", None) in (None, digest(source)), "the hash of the source does not agree")
    reader, limit, needed = Reader(body, tables), body["budget"]["max_tokens"], body["budget"]["needed"]
    require(body["previous"] in (None, previous), "it names another certificate before it: one is missing or misplaced")
    try:
        reader.read(body["derivation"])
    except Exception as error:
        raise ValueError(f"step {reader.step} of the derivation, at byte {reader.at}: {error}") from error
    last, eos = reader.tokens[-1:], body["vocabulary"]["eos"]
    count = len(reader.tokens) - sum(len(each) > 2 and each[0] in eos for each in last)
    fits = limit is None or all(0 <= least <= limit - at for at, least in enumerate(needed or [0] * (count + 1)))
    require(fits and needed[count:] == [0] * bool(needed), f"the budget of {limit} tokens was not kept")
    return str(certificate["sha256"])


def search(pattern: str, text: str) -> object:
    """Looks for a pattern of ECMA-262 in a text. Raises ValueError and ``re.error`` if Python cannot say the same."""
    require(not UNLIKE.search(pattern), f"Python cannot look for {pattern!a:.80}")

    def write(piece: re.Match[str]) -> str:
        is_class = len(found := piece[0]) > 1 and found[0] == "["
        return ALONE.get(found) or (f"[{MEMBER.sub(write_member, found[1:])}" if is_class else found)

    def write_member(piece: re.Match[str]) -> str:
        return IN_CLASS.get(piece[0], piece[0])

    return re.compile(PIECE.sub(write, pattern), re.ASCII).search(text)


def exact(text: str) -> int | Decimal:
    """Returns a number of a JSON text: an integer, or a decimal."""
    return int(n) if abs((n := Decimal(text)).adjusted()) < 400 and n == int(n) else n


def judge(certificate: Any, read: Any = exact) -> str:
    """Says whether jsonschema, if installed, agrees; ``read`` reads numbers of the text. Raises ValueError."""
    if (source := certificate.get("source") or {}).get("kind") != "json_schema" or not util.find_spec("jsonschema"):
        return "not judged by jsonschema"
    jsonschema, registry = import_module("jsonschema"), import_module("referencing").Registry()  # it fetches nothing
    try:
        value = json.loads(data(certificate["text"]), parse_float=read)
        with patch("re.search", search):  # by which jsonschema looks for patterns
            is_ecma = not jsonschema.Draft7Validator({"pattern": r"\d"}).is_valid("\u0663")
            require(is_ecma, "this version of it has other patterns")
            jsonschema.validate(value, json.loads(source["text"], parse_float=exact), registry=registry)
    except Exception as error:  # noqa: BLE001 - a schema may do anything to a library that is not ready for it
        require(not isinstance(error, jsonschema.ValidationError), f"jsonschema refuses the text: {error!a:.200}")
        return f"not judged by jsonschema: {error!a:.200}"
    return "jsonschema agrees"


def main(arguments: list[str]) -> int:
    """Checks files in order, behind ``--table=LINES``, if any, and the hash of the certificate before them, if any."""
    named = [each.partition("=")[2] for each in arguments if each.startswith("--table=")]
    arguments = arguments[len(named) :]
    before, (path, number) = next(filter(re.compile("[0-9a-f]{64}").fullmatch, arguments[:1]), None), ("", 0)
    try:
        tables = dict(read_table(Path(each).read_bytes()) for each in named)
        for path in arguments[before is not None :] or ["FILE"]:
            for number, text in enumerate(re.split(rb"\n(?=\{)", Path(path).read_bytes().strip()), 1):
                found = json.loads(text.decode("utf-8-sig"))
                before = verify(certificate := found if "format" in found else found["certificate"], before, tables)
                print(f"{path}: {number}: holds, {judge(certificate)}, sha256 {before}")
    except Exception as error:  # noqa: BLE001 - any error refuses the file
        print(f"{path}: {number}: refused: {error!a}")
        return 1
    print("not checked: signatures, prompts, models, and whether each grammar is that of its source")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
