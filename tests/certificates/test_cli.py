"""``constrain generate --certificate`` and ``constrain verify``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from constrain.certificates import verify_signature
from constrain.certificates.certificate import canonical
from constrain.llama.model import default_model_path
from tests.certificates.test_signing import KEY, OTHER, private_pem, public_pem
from tests.certificates.test_verifier import made, sealed
from tests.support.command_line import call

pytestmark = pytest.mark.usefixtures("tiny_model")

ASKED = "Who is Ada?"
GENERATE = ("generate", ASKED, "--schema", "name, level: low|high", "--max-tokens", "40", "--ctx", "1024")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a signed certificate of the model (``c.json``), the prompt, and keys."""
    (tmp_path / "key.pem").write_bytes(private_pem(KEY))
    (tmp_path / "public.pem").write_bytes(public_pem(KEY))
    (tmp_path / "other.pem").write_bytes(public_pem(OTHER))
    (tmp_path / "prompt.txt").write_text(ASKED)
    done = call(*GENERATE, "--temperature", "0.9", "--sign", "key.pem", "--certificate", "c.json", "--threads", "1")
    assert done.returncode == 0, done.stderr
    return tmp_path


@pytest.mark.slow
def test_generate_writes_canonical_json(folder: Path) -> None:
    text = (folder / "c.json").read_text()
    certificate = json.loads(text)
    assert text == canonical(certificate) + "\n"
    assert "ids" not in certificate["prompt"]
    assert call(*GENERATE, "--certificate", folder / "p.json", "--certificate-prompt").returncode == 0
    assert json.loads((folder / "p.json").read_text())["prompt"]["ids"]
    verify_signature(certificate, public_pem(KEY))


@pytest.mark.slow
def test_verify_says_what_holds_and_what_is_left_out(folder: Path) -> None:
    done = call("verify", folder / "c.json")
    assert done.returncode == 0, done.stderr
    holds, left_out = done.stdout.splitlines()
    assert "is one of the grammar, within its budget; jsonschema agrees, with numbers as decimals and as" in holds
    assert "(--public-key)" in left_out
    assert "(--recompile)" in left_out
    assert "(--model)" in left_out


@pytest.mark.slow
def test_the_model_writes_the_same_answer_again(folder: Path) -> None:
    checks = ("--model", default_model_path(), "--prompt", folder / "prompt.txt", "--threads", "1")
    done = call("verify", folder / "c.json", *checks, "--recompile", "--public-key", folder / "public.pem")
    assert done.returncode == 0, done.stderr
    (holds,) = done.stdout.splitlines()
    assert "the signature is by this key; the source gives this grammar; the model writes the same answer" in holds


@pytest.mark.slow
def test_another_answer_has_a_status_of_its_own(folder: Path) -> None:
    certificate: dict[str, Any] = json.loads((folder / "c.json").read_text())
    del certificate["signature"]
    sampling = {**certificate["sampling"], "temperature": 5.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "seed": 1}
    (folder / "other.json").write_text(canonical(sealed(certificate, sampling=sampling)))
    done = call("verify", folder / "other.json", "--model", default_model_path(), "--prompt", folder / "prompt.txt")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "DIFFERENT: token " in done.stdout
    assert "is true all the same" in done.stdout


@pytest.mark.slow
def test_checks_that_fail_name_the_file_and_the_reason(folder: Path) -> None:
    (folder / "wrong.txt").write_text("Who is Bob?")
    for options, why in (
        (("--public-key", folder / "other.pem"), "the signature is not one by this key"),
        (("--model", default_model_path()), "the certificate has only the hash of the prompt; give the prompt, too"),
        (("--model", default_model_path(), "--prompt", folder / "wrong.txt"), "the prompt is not the one"),
    ):
        done = call("verify", folder / "c.json", *options)
        assert done.returncode == 1
        assert f"c.json: refused: {why}" in done.stderr


@pytest.mark.slow
def test_a_chain_is_followed(tmp_path: Path) -> None:
    chain: list[dict[str, Any]] = []
    for number in range(3):
        chain.append(made(f'{{"n": {number}, "s": ""}}', previous=chain[-1]["sha256"] if chain else None))
    (tmp_path / "all.jsonl").write_text("".join(canonical(each) + "\n" for each in chain))
    done = call("verify", tmp_path / "all.jsonl")
    assert done.returncode == 0, done.stderr
    assert [line.partition(": ")[0][-13:] for line in done.stdout.splitlines()[:3]] == [
        "certificate 1",
        "certificate 2",
        "certificate 3",
    ]
    (tmp_path / "some.jsonl").write_text("\n".join(map(canonical, [chain[0], chain[2]])))
    done = call("verify", tmp_path / "some.jsonl")
    assert done.returncode == 1
    assert "some.jsonl, certificate 2: refused: it names another certificate before it" in done.stderr

    (tmp_path / "rest.jsonl").write_text("\n".join(map(canonical, chain[1:])))
    assert "refused: it names another certificate before it" in call("verify", tmp_path / "rest.jsonl").stderr
    assert call("verify", tmp_path / "rest.jsonl", "--previous", chain[0]["sha256"]).returncode == 0


def test_checks_need_the_members_that_they_are_about(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text(canonical(made('{"n": 1, "s": ""}')))
    done = call("verify", tmp_path / "c.json", "--recompile")
    assert done.returncode == 1
    assert "the certificate lacks what this check needs: KeyError" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("verify", "none.json"), "none.json: there is no such file"),
        (("verify", "text.txt"), "text.txt: this is no JSON"),
        (("verify", "list.json"), "this is no certificate, but a JSON list"),
        (("verify", "text.txt", "--prompt", "text.txt"), "give --model, too"),
        (("verify", "text.txt", "--public-key", "text.txt"), "text.txt: this is no public key in PEM"),
        ((*GENERATE, "--certificate-prompt"), "give --certificate, too"),
        ((*GENERATE, "--sign", "text.txt"), "give --certificate, too"),
        ((*GENERATE, "--certificate", "."), "is a folder"),
        ((*GENERATE, "--certificate", "c.json", "--vote", "3"), "a certificate is about one"),
        (("batch", "in.jsonl", "-o", "out.jsonl", "--certificates", "--vote", "3"), "a certificate is about one"),
        (("batch", "in.jsonl", "-o", "out.jsonl", "--certificate-prompts"), "it needs --certificates"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], message: str, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("no certificate")
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "in.jsonl").write_text('"a"\n')
    done = call(*arguments)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.replace("│", " ").split())


def test_a_key_that_cannot_be_used_is_refused_before_any_token(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("no key")
    done = call(*GENERATE, "--certificate", "c.json", "--sign", "text.txt")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "text.txt: this is no private key in PEM" in done.stderr


def test_free_text_is_refused_before_any_token() -> None:
    done = call("generate", ASKED, "--certificate", "c.json")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "certificate needs a schema" in done.stderr
