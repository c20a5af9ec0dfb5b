"""The files of the page: few bytes, strict headers, nothing from elsewhere."""

from __future__ import annotations

import json
import re

import pytest

from constrain.server.app import Application
from constrain.server.playground.exporting import export_run, export_template, read_assets
from tests.support.server.asking import ask

MOST_BYTES = 100_000

HOSTILE = '</script><script>alert(1)</script><!-- & "\u2028 {{data}} {{style}}'


def loaded() -> list[str]:
    """The files that the page loads."""
    page = read_assets()["index.html"].decode()
    found: list[str] = re.findall(r'(?:src|href)="playground/([^"]+)"', page)
    return found


def test_the_page_is_small() -> None:
    assert sum(len(read_assets()[name]) for name in ("index.html", *loaded())) < MOST_BYTES


@pytest.mark.parametrize("path", ["/", "/playground/style.css", "/playground/vendor/htm-preact.js"])
def test_files_come_with_strict_headers(application: Application, path: str) -> None:
    response = ask(application, "GET", path)
    assert response.status_code == 200
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert response.headers["x-content-type-options"] == "nosniff"
    again = ask(application, "GET", path, headers={"If-None-Match": response.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("path", ["/playground/../app.py", "/playground/none.js", "/playground/vendor/LICENSE-htm"])
def test_no_other_files_are_there(application: Application, path: str) -> None:
    assert ask(application, "GET", path).status_code == 404


def test_the_page_loads_its_own_files_only() -> None:
    page = read_assets()["index.html"].decode()
    found = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert found
    for name in found:
        assert name.startswith(("playground/", "data:,")), name
        if name.startswith("playground/"):
            assert name.removeprefix("playground/") in read_assets()
    assert "<script>" not in page
    assert "style=" not in page


def test_scripts_make_no_markup_and_reach_no_other_host() -> None:
    for name, data in read_assets().items():
        text = data.decode()
        if name.startswith("vendor/"):
            continue
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            name
        )
        assert not re.search(r"https?://(?!127\.0\.0\.1|localhost)", text.replace("http://www.w3.org", "")), name


def test_an_exported_run_has_no_markup_of_its_own() -> None:
    run = {"request": {}, "prompt": None, "tokens": [{"text": HOSTILE}], "done": {"text": HOSTILE}}
    page = export_run(run)
    assert page.count("</script>") == export_template().count("</script>")
    (data,) = re.findall(r'<script type="application/json" id="run">(.*?)</script>', page, re.DOTALL)
    assert json.loads(data) == run
    assert not re.search(r"\{\{(policy|style|scripts)\}\}", export_template())
