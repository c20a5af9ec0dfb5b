"""The examples of the guide and the recipes, each in the environment of its client, against a server as they start it.

Those for the ``openai`` package run in ``tests/server/test_guide.py``, too, without an installation.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.clients.environments import KEYS, SECONDS, install, program_of, variables_of
from tests.support.guide import Example, examples, ollama_examples, recipes
from tests.support.pages import blocks

pytestmark = pytest.mark.long  # installs the clients

FOLDERS = {
    "openai, in Python": "openai_python",
    "OpenAI Agents SDK": "openai_agents",
    "instructor": "instructor",
    "pydantic-ai": "pydantic_ai",
    "LangChain": "langchain",
    "openai, in JavaScript": "javascript",
    "ollama, in Python": "ollama_python",
    "ollama, in JavaScript": "ollama_javascript",
}


@pytest.mark.parametrize("example", [*examples(), *ollama_examples()], ids=lambda example: FOLDERS[example.client])
def test_it_runs_as_pasted(example: Example, server: str, environments: Path) -> None:
    run(FOLDERS[example.client], example.at(server), server, environments)


def test_the_example_for_the_anthropic_package_runs_as_pasted(server: str, environments: Path) -> None:
    [code] = [block.code for block in blocks() if block.language == "python" and "from anthropic" in block.code]
    address = "http://127.0.0.1:8080"
    assert address in code
    run("anthropic_python", code.replace(address, server.removesuffix("/v1")), server, environments)


@pytest.mark.parametrize("recipe", recipes(), ids=lambda recipe: recipe.client)
def test_a_recipe_runs_as_pasted(recipe: Example, server: str, environments: Path) -> None:
    run(recipe.client, recipe.at(server), server, environments)


def run(client: str, code: str, server: str, environments: Path) -> None:
    """Runs a program in the environment of a client."""
    environment = install(client, environments)
    if client == "ollama_javascript":  # has no variable for a key
        code = code.replace("new Ollama({", f"new Ollama({{ headers: {{ authorization: 'Bearer {KEYS[0]}' }},")
    done = subprocess.run(
        program_of(client, environment, code),
        env=variables_of(client, server),
        cwd=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
