"""Checks certificates of answers: ``python verify.py FILE ...``, alone; with ``jsonschema`` too, if it is installed."""

import sys

sys.path[:] = [each for each in sys.path if __name__ != "__main__" or not each.endswith("constrain")]  # has ``types``

import hashlib
import json
import re
from decimal import Decimal
from functools import reduce
from importlib import import_module, util
from itertools import accumulate
from pathlib import Path
from typing import Any

FORMAT = "constrain certificate 1"
NUMBER = re.compile(rb"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
STRING, BYTE = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL), re.compile(b".", re.DOTALL)
WIDE = rb"[\xc2-\xdf][\x80-\xbf]|(?:\xe0[\xa0-\xbf]|\xed[\x80-\x9f]|[\xe1-\xec\xee\xef][\x80-\xbf])[\x80-\xbf]"
WIDE += rb"|(?:\xf0[\x90-\xbf]|\xf4[\x80-\x8f]|[\xf1-\xf3][\x80-\xbf])[\x80-\xbf]{2}"
CHARACTER, DECIMAL = re.compile(rb"[\x00-\x7f]|" + WIDE), re.compile(rb"-?([0-9]+)((?:\.[0-9]+)?)")
SPELLED = re.compile(rb'\\(?:["\\bfnrt]|u00(?:0[0-7bef]|1[0-9a-f]))|[^\x00-\x1f"\\\x80-\xff]|' + WIDE)
SCALAR, LABEL, ORDERED, LABELLED, CLOSE = 1, 2, 3, 4, 5
TYPES = {"[": r"\[", "]": r"\]", "{": r"\{", "}": r"\}", "<": r"\[(?:", ">": r"(?:,|(?=\])))*\]"}  # <N>: array of N
TYPES |= {"N": "[0-9]+", "Z": "-?[0-9]+", "M": "(?:[0-9]+|null)", "I": "(?:[0-9]+|-1)", "F": "(?:true|false)"}
TYPES |= {"S": r'"(?:[^"\\]|\\.)*"', "B": r'(?:"(?:[^"\\]|\\.)*"|\{"hex":"(?:[0-9a-fA-F]{2})+"\})', "R": "[0-5]"}
EDGE = "[N,(?:N,N,<[N,N,M]>,<[(?:0|1),N]>,I,I|-N,N,<[N,N,M]>,<[0,N]>,-1,I|null,N,<[N,N,M]>,<[0,N]>,-1,-1)]"
RULE = '{"accepting":<N>,"edges":<' + EDGE + '>(?:,"max_tokens":N)?,"slots":<(?:N|-1|-2)>}'
TERMINAL = '{"expression":N(?:,"label":B)?(?:,"lazy":F)?(?:,"max_tokens":N)?(?:,"role":R)?(?:,"tokens":<[N,N]>)?}'
EXPRESSION = '[(?:"(?:all|any)",<N>|"both",[N(?:,N)*]|"not",N|"repeat",N,N,M|"class",<[N,N]>,"(?:byte|char|json)"'
EXPRESSION += '|"literal",<B>|"multiple",(?!0)N,N|"window",N,N,N,M|"substring",<S>,N,M,"(?:char|json)",<"(?:0|1)*">)]'
SHAPES = {"tokens": '(?:[N,(?!"")B]|[N,"",(?!"")S])', "derivation": "(?:Z|[Z,Z])", "vocabulary": '{"eos":<N>}'}
SHAPES |= {"budget": '{"max_tokens":M,"needed":<Z>}', "grammar": '{"numbers_by_double":F,"strings_by_value":F}'}
SHAPES |= {"rules": RULE, "terminals": TERMINAL, "expressions": EXPRESSION, "ignored": "N"}  # of each item, if arrays
PATTERNS = {kind: re.compile("".join(TYPES.get(each, each) for each in shape)) for kind, shape in SHAPES.items()}
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


class Match:
    """Matches of expressions in the text of one lexeme. A set of places in it is a number: its bits."""

    def __init__(self, nodes: list[Any], text: bytes) -> None:
        self.nodes, self.text, self.everywhere, self.above = nodes, text, (2 << len(text)) - 1, len(nodes)
        self.known: dict[tuple[int, int], int] = {}

    def ends(self, node: int, starts: int) -> int:
        """Returns where matches end that begin at some places."""
        require(node < self.above, "an expression contains itself")
        if (found := self.known.get((node, starts))) is None:
            require(len(self.known) < 10**6, "a lexeme has too many matches of parts")
            (kind, *parts), found, left, above, self.above = self.nodes[node], 0, starts, self.above, node
            matches = getattr(self, f"_{kind}")
            if kind in ("all", "any", "repeat"):
                left, found = 0, matches(starts, *parts)
            while left:
                found, left = found | matches((left & -left).bit_length() - 1, *parts), left & (left - 1)
            self.above, self.known[node, starts] = above, found
        return found

    def _all(self, starts: int, parts: list[int]) -> int:
        return reduce(lambda places, part: places and self.ends(part, places), parts, starts)

    def _any(self, starts: int, parts: list[int]) -> int:
        return reduce(lambda found, part: found | self.ends(part, starts), parts, 0)

    def _both(self, at: int, parts: list[int]) -> int:
        return reduce(lambda found, part: found & self.ends(part, 1 << at), parts, self.everywhere)

    def _character(self, at: int, how: str) -> tuple[int, int]:
        if not (found := {"byte": BYTE, "char": CHARACTER, "json": SPELLED}[how].match(self.text, at)):
            return -1, at
        text = found[0] if how == "byte" else json.loads(b'"%b"' % found[0]) if how == "json" else found[0].decode()
        return ord(text), found.end()

    def _class(self, at: int, ranges: list[list[int]], how: str) -> int:
        code, end = self._character(at, how)
        return any(low <= code <= high for low, high in ranges) << end

    def _repeat(self, starts: int, part: int, least: int, most: int | None) -> int:
        found, count, places = 0 if least else starts, 0, starts * (most is None or least <= most)
        while places and count != most:
            after, count = self.ends(part, places), count + 1
            count = max(count, least * (after == places))  # the part matches the empty text, and nothing more
            places, found = after & ~found, found | after * (count >= least)
        return found

    def _literal(self, at: int, texts: list[Any]) -> int:
        return sum({1 << at + len(text) for text in map(data, texts) if self.text.startswith(text, at)})

    def _not(self, at: int, part: int) -> int:
        return self.everywhere & -(1 << at) & ~self.ends(part, 1 << at)

    def _multiple(self, at: int, divisor: int, scale: int) -> int:
        reads = [DECIMAL.fullmatch(self.text, at, end) for end in range(at + 1, len(self.text) + 1)]
        power, numbers = 10 ** min(scale, 99999), [(r.end(), int(r[1] + r[2][1:]), len(r[2][1:])) for r in reads if r]
        return sum(1 << end for end, n, point in numbers if n * power % (divisor * 10**point) == 0)

    def _window(self, at: int, part: int, unit: int, least: int, most: int | None) -> int:
        places, allowed, count, last, fits = 1 << at, 0, 0, 0, False
        while places and places != last:
            last, fits = places, count >= least and (most is None or count <= most)
            allowed |= places * fits
            places, count = self.ends(unit, places), count + 1
        return self.ends(part, 1 << at) & (allowed | -2 * last * fits)  # what is no unit may follow the last one

    def _substring(self, at: int, texts: list[str], least: int, most: int | None, how: str, cuts: list[str]) -> int:
        ends, chars, found = [at], "", 0 if least else 1 << at
        while len(chars) != most and (char := self._character(ends[-1], how))[0] >= 0:
            chars += chr(char[0])
            ends.append(char[1])
        for number, text in enumerate(texts):
            marks = cuts[number] + "1" if cuts else "1" * (len(text) + 1)
            require(len(marks) == len(text) + 1 and len(cuts) in (0, len(texts)), "cuts of another length")
            for begin in [begin for begin, mark in enumerate(marks) if mark == "1"]:
                for size, wanted in enumerate(chars, 1):
                    if text[begin + size - 1 : begin + size] != wanted:
                        break
                    found |= (size >= least and marks[begin + size] == "1") << ends[size]
        return found


class Reader:
    """A derivation that is being read: the rules under way, their memory, and the values of open groups."""

    def __init__(self, certificate: dict[str, Any]) -> None:
        self.grammar, self.tokens = certificate["grammar"], certificate["tokens"]
        for kind, pattern in PATTERNS.items():
            whole = (
                self.grammar[kind] if kind in ("expressions", "ignored", "rules", "terminals") else certificate[kind]
            )
            for number, part in enumerate(whole if isinstance(whole, list) else [whole]):
                known = {n: part[n] for n in part if f'"{n}":' in SHAPES[kind]} if isinstance(part, dict) else part
                require(pattern.fullmatch(canonical(known)), f"{kind}: number {number} is malformed")
        parts = [data(written) or b"\xff" + name[0].encode() + b"\xfe" for _, written, *name in self.tokens]
        self.text, self.at, self.step, self.matched = b"".join(parts), 0, 0, dict[tuple[int, bytes], bool]()
        self.starts = {start: number for number, start in enumerate(accumulate(map(len, parts), initial=0))}
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
            memory[slot] = memory[slot] | {text} if action else min(memory[slot] + 1, rule["slots"][slot])
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
            ends = Match(self.grammar["expressions"], text).ends(terminal["expression"], 1) >> 1
            is_first = not terminal.get("lazy") or not ends & (ends - 1)
            self.matched[index, text] = ends >> len(text) - 1 == 1 and is_first and not {0xFE, 0xFF} & {*text}
        require(self.matched[index, text], f"terminal {terminal.get('name')} does not match {text!a:.80}")
        require(most is None or sum(begin <= start < end for start in self.starts) <= most, f"more than {most} tokens")
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


def verify(certificate: Any) -> str:
    """Checks one certificate and returns its hash. Raises ValueError, and errors of Python for malformed ones."""
    body = {name: value for name, value in certificate.items() if name not in ("sha256", "signature")}
    require(body["format"] == FORMAT, f"the format is not {FORMAT!r}")
    require(certificate["sha256"] == digest(body), "the hash of the certificate does not agree")
    require(body["grammar_sha256"] == digest(body["grammar"]), "the hash of the grammar does not agree")
    reader, limit, needed = Reader(body), body["budget"]["max_tokens"], body["budget"]["needed"]
    require(re.sub(rb"\xff[^\xfe\xff]+\xfe", b"", reader.text) == data(body["text"]), "the tokens spell another text")
    try:
        reader.read(body["derivation"])
    except Exception as error:
        raise ValueError(f"step {reader.step} of the derivation, at byte {reader.at}: {error}") from error
    last, eos = reader.tokens[-1:], body["vocabulary"]["eos"]
    count = len(reader.tokens) - sum(len(each) > 2 and each[0] in eos for each in last)
    fits = limit is None or all(0 <= least <= limit - at for at, least in enumerate(needed or [0] * (count + 1)))
    require(fits and needed[count:] == [0] * bool(needed), f"the budget of {limit} tokens was not kept")
    return str(certificate["sha256"])


def exact(text: str) -> int | Decimal:
    """Returns a number of a JSON text: an integer, or a decimal."""
    return int(n) if abs((n := Decimal(text)).adjusted()) < 400 and n == int(n) else n


def judge(certificate: Any, read: Any = exact) -> str:
    """Says whether jsonschema, if installed, agrees; ``read`` reads numbers of the text. Raises ValueError."""
    if (source := certificate.get("source") or {}).get("kind") != "json_schema" or not util.find_spec("jsonschema"):
        return "not judged by jsonschema"
    jsonschema, registry = import_module("jsonschema"), import_module("referencing").Registry()  # it fetches nothing
    try:
        value, schema = json.loads(certificate["text"], parse_float=read), json.loads(source["text"], parse_float=exact)
        jsonschema.validate(value, schema, registry=registry)
    except Exception as error:  # noqa: BLE001 - a schema may do anything to a library that is not ready for it
        require(not isinstance(error, jsonschema.ValidationError), f"jsonschema refuses the text: {error!a:.200}")
        return f"not judged by jsonschema: {error!a:.200}"
    return "jsonschema agrees"


def main(arguments: list[str]) -> int:
    """Checks files in order, behind the hash of the certificate before them, if any. Returns the exit status."""
    before, (path, number) = next(filter(re.compile("[0-9a-f]{64}").fullmatch, arguments[:1]), None), ("", 0)
    try:
        for path in arguments[before is not None :] or ["FILE"]:
            for number, text in enumerate(re.split(rb"\n(?=\{)", Path(path).read_bytes().strip()), 1):
                last, found = before, json.loads(text.decode("utf-8-sig"))
                before = verify(certificate := found if "format" in found else found["certificate"])
                require(certificate["previous"] in (None, last), "it names another certificate before it")
                print(f"{path}: {number}: holds, {judge(certificate)}, sha256 {before}")
    except Exception as error:  # noqa: BLE001 - any error refuses the file
        print(f"{path}: {number}: refused: {error!a}")
        return 1
    print("not checked: signatures, prompts, models, and whether each grammar is that of its source")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
