"""What many tools cost at once: first mask, masks and memory, beside the peers that are installed.

    python benchmarks/mcp_servers.py FOLDER         lists the tools of public servers, in FOLDER/listed.json
    python benchmarks/many_tools.py FOLDER/listed.json --output benchmarks/results/many_tools.json

A request with many tools is one schema: a call is the name of a tool and arguments of its schema. ``SIZES`` are numbers
of tools, each drawn ``--samples`` times. Calls to feed are random walks over our masks. The rest is that of
``masks.py``. Tools that some engine refuses are left out, so that all engines read the same ones.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from about import origin
from masks import ENGINES, WAYS, Instance, Tokens, longest_match, measure_tasks, print_tables
from mcp_installs import read_listed
from mcp_servers import HURRIES, walk

import constrain
from constrain.mcp.names import different_names

if TYPE_CHECKING:
    from masks import Engine

SIZES = (10, 100, 400, 1000)
CALLS = 5
"""Calls that are fed to each set of tools."""


def call_schema(tool: dict[str, Any]) -> dict[str, Any]:
    """Calls of one tool, as a JSON Schema."""
    return {
        "type": "object",
        "properties": {"name": {"const": tool["name"]}, "arguments": {"type": "object", **tool["parameters"]}},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def compiles(engine: Engine, schema: dict[str, Any]) -> bool:
    try:
        engine.compile(schema)
    except Exception:  # noqa: BLE001 - whatever an engine raises is a refusal
        return False
    return True


def calls_of(vocabulary: constrain.Vocabulary, schema: dict[str, Any]) -> list[str]:
    """Random calls, as JSON text."""
    constraint = constrain.compile(schema, vocabulary, cache=False)
    walks = [walk(constraint, Random(number), HURRIES[1 + number % (len(HURRIES) - 1)], []) for number in range(CALLS)]
    texts = [b"".join(map(vocabulary.token_bytes, tokens)) for tokens in walks]
    return [json.dumps(json.loads(text), ensure_ascii=False) for text in texts]


def main() -> None:
    os.environ["CONSTRAIN_CACHE"] = ""  # cold is cold
    data = Path(os.environ.get("CONSTRAIN_DATA", "."))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("listed", type=Path, help="tools, as mcp_servers.py keeps them")
    parser.add_argument("--vocabulary", type=Path, default=data / "vocabs" / "ggml-vocab-llama-bpe.gguf")
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), default=list(ENGINES)[: -len(WAYS)])
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=1, help="passes in fresh processes (default: %(default)s)")
    parser.add_argument("--output", type=Path, default=Path("many_tools.json"))
    arguments = parser.parse_args()
    listed = [(server.name, tool) for server in read_listed(arguments.listed) for tool in server.tools]
    names = different_names([(server, tool["name"]) for server, tool in listed])
    tools = [{**tool, "name": name} for name, (_, tool) in zip(names, listed, strict=True)]
    vocabulary = constrain.Vocabulary.from_gguf(arguments.vocabulary)
    tokens = Tokens.of(arguments.vocabulary, vocabulary)
    engines = [ENGINES[name].start(tokens) for name in arguments.engines]
    read = [[compiles(engine, call_schema(tool)) for tool in tools] for engine in engines]
    print(f"{len(tools)} tools; compiled: " + ", ".join(map(str, map(sum, read))), flush=True)
    tools = [tool for tool, *found in zip(tools, *read, strict=True) if all(found)]
    split, reports = longest_match(tokens), []
    for size in SIZES:
        tasks = []
        for number in range(arguments.samples):
            schema = {"anyOf": [call_schema(tool) for tool in Random(f"{size} {number}").sample(tools, size)]}
            texts = calls_of(vocabulary, schema)
            tasks.append((schema, [Instance(list(split(text.encode())), valid=True) for text in texts]))
        report = {"tools": size, **measure_tasks(arguments.engines, arguments.repeat, tokens, tasks)}
        print_tables(report)
        reports.append(report)
    arguments.output.write_text(json.dumps({**origin(), "tools": len(tools), "sizes": reports}, indent=1) + "\n")


if __name__ == "__main__":
    main()
