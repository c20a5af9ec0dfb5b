"""The page in Chromium: everything a person does on it, with a mouse, a keyboard, a phone and a screen reader.

    CONSTRAIN_SCREENSHOTS=docs/guides/playground pytest tests/server/playground/test_browser.py

also writes the pictures of the guide.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import constrain
from constrain.server.app import Application
from constrain.server.settings import Settings
from tests.support.server.asking import served_as, serving
from tests.support.waiting import wait_until

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, ConsoleMessage, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name)) is not None), None)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (apt-get install chromium)"),
]

MILLISECONDS = 60_000

SCHEMA = """{
  "type": "object",
  "properties": {
    "name": {"type": "string", "maxLength": 20},
    "level": {"enum": ["low", "high"]}
  },
  "required": ["name", "level"]
}"""

TOOL = {
    "type": "function",
    "function": {
        "name": "forecast",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string", "maxLength": 20}},
            "required": ["city"],
        },
    },
}

HOSTILE = '<img src=x onerror=document.title="hit"><script>document.title="hit"</script>\u202e{{7*7}}' + 100 * "x"

DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 360, "height": 740}

WIDTHS = (390, 768, 1280)
"""Pixels of a phone, a tablet and a desktop."""

MODEL = "smollm2-135m-instruct-q4_1-of-the-demo-extra-on-2-cores"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


def wait_for(page: Page, expression: str) -> None:
    """Waits until an expression is true. The page's policy forbids the way in which Playwright would do it."""
    wait_until(lambda: page.evaluate(expression) or page.wait_for_timeout(20))


def require_no_sideways_scrolling(page: Page) -> None:
    """Makes the page as wide as each screen; nothing on it may be wider."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width


class Shown:
    """One page of the playground. What its console says, and what fails to load, is an error of the test."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.set_default_timeout(MILLISECONDS)
        page.on("console", self._note)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(url)
        page.wait_for_selector("#generate:not([disabled])")

    def _note(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def pick(self, kind: str, text: str) -> None:
        """Chooses a kind of language and types its text."""
        self.page.select_option("#kind", kind)
        if kind != "none":
            self.page.fill("#language-text", text)

    def wait_for_check(self, state: str) -> None:
        self.page.wait_for_selector(f'#check[data-state="{state}"]')

    def set_number(self, name: str, value: object) -> None:
        self.page.evaluate("name => (document.getElementById(name).closest('details') || {}).open = true", name)
        self.page.fill(f"#{name}", str(value))

    def generate(self) -> list[dict[str, Any]]:
        """Generates an answer; returns its tokens as the page has them."""
        self.page.click("#generate")
        self.page.wait_for_selector('#summary[data-status="done"]')
        return self.tokens()

    def tokens(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.page.evaluate("Playground.store.state.run.tokens")
        return found

    def details(self, index: int) -> str:
        """The details of a token under the pointer."""
        self.page.hover(f'.token[data-index="{index}"]')
        self.page.wait_for_selector(f'#details[data-index="{index}"]')
        return self.page.inner_text("#details")

    def picture(self, name: str) -> None:
        """Takes a picture for the guide, if these are wanted."""
        if folder := os.environ.get("CONSTRAIN_SCREENSHOTS"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=str(Path(folder) / f"{name}.png"))

    def require_accessible(self) -> None:
        """Has axe-core look for what people with other abilities cannot use."""
        found = axe.Axe().run(self.page).response["violations"]
        serious = [each for each in found if each["impact"] in ("serious", "critical")]
        assert not serious, [(each["id"], each["nodes"][0]["html"]) for each in serious]


@pytest.fixture(scope="module")
def server(model: constrain.Model) -> Iterator[str]:
    if "CONSTRAIN_SCREENSHOTS" in os.environ:
        model = constrain.Model(n_threads=2)  # pictures are of answers that mean something
    with serving(Application(served_as(model, MODEL), Settings())) as found:
        yield found


@pytest.fixture
def shown(browser: Browser, server: str, request: pytest.FixtureRequest) -> Iterator[Shown]:
    options: dict[str, Any] = {"viewport": DESKTOP, "reduced_motion": "reduce", **getattr(request, "param", {})}
    context = browser.new_context(**options)
    found = Shown(context.new_page(), server)
    yield found
    context.close()
    assert found.complaints == []


def test_a_schema_with_an_error_is_mended_and_answered(shown: Shown) -> None:
    shown.pick("json_schema", SCHEMA.replace('"low", "high"]', '"low", "high"'))
    shown.wait_for_check("invalid")
    assert shown.page.get_attribute(".mark.errors", "data-line") is not None
    assert "not JSON" in shown.page.inner_text("#errors")
    assert shown.page.get_attribute("#language-text", "aria-invalid") == "true"
    shown.picture("error")
    shown.pick("json_schema", SCHEMA)
    shown.wait_for_check("valid")
    assert re.search(r"at least [0-9]+ tokens", shown.page.inner_text("#check"))
    shown.set_number("temperature", 0)
    tokens = shown.generate()
    shown.details(next(token["index"] for token in tokens if token["origin"] == "chosen"))
    shown.picture("answer")
    text = shown.page.evaluate("Playground.store.state.run.text")
    assert set(json.loads(text)) == {"name", "level"}
    assert "".join(token["text"] for token in tokens) == text
    assert shown.page.locator("#answer .token").count() == len(tokens)


def test_details_of_a_token_tell_what_the_endpoint_told(shown: Shown) -> None:
    shown.pick("json_schema", SCHEMA)
    for token in shown.generate():
        details = shown.details(token["index"])
        assert f"{token['allowed']:,}" in details.replace("\u202f", ",").replace("\u00a0", ",")
        assert str(token["token"]) in details
        assert token["expected"][0]["name"] in details
        if token["pointer"]:
            assert token["pointer"] in details
        assert f"{token['tokens_left']}" in details


def test_the_keyboard_reaches_every_token_and_its_details(shown: Shown) -> None:
    shown.pick("short", "name, level: low|high")
    shown.page.focus("#language-text")
    shown.page.keyboard.press("Control+Enter")
    shown.page.wait_for_selector('#summary[data-status="done"]')
    count = len(shown.tokens())
    shown.page.focus('.token[data-index="0"]')
    for index in range(1, count):
        shown.page.keyboard.press("ArrowRight")
        assert shown.page.evaluate("document.activeElement.dataset.index") == str(index)
        assert shown.page.get_attribute("#details", "data-index") == str(index)
    shown.page.keyboard.press("Home")
    assert shown.page.evaluate("document.activeElement.dataset.index") == "0"
    shown.page.keyboard.press("End")
    assert shown.page.evaluate("document.activeElement.dataset.index") == str(count - 1)


def test_another_token_begins_a_branch(shown: Shown) -> None:
    shown.pick("json_schema", SCHEMA)
    shown.set_number("temperature", 0)
    tokens = shown.generate()
    place = next(token for token in tokens if token["origin"] == "chosen" and len(token["allowed_top"]) > 1)
    other = next(each for each in place["allowed_top"] if each["token"] != place["token"])
    shown.page.click(f'.token[data-index="{place["index"]}"]')
    shown.page.locator(f'#details .branch[data-token="{other["token"]}"]').first.click()
    wait_for(shown.page, "Playground.store.state.runs.length === 2")
    shown.page.wait_for_selector('#summary[data-status="done"]')
    branch = shown.tokens()
    assert branch[place["index"]]["token"] == other["token"]
    assert [token["token"] for token in branch[: place["index"]]] == [
        token["token"] for token in tokens[: place["index"]]
    ]
    assert shown.page.locator("#branches").is_visible()
    shown.picture("branch")


def test_a_refused_token_has_a_reason(shown: Shown) -> None:
    shown.pick("json_schema", SCHEMA)
    tokens = shown.generate()
    place = next(token for token in tokens if any(not each["allowed"] for each in token["top"]))
    shown.page.click(f'.token[data-index="{place["index"]}"]')
    shown.page.locator("#details .why").first.click()
    words = "/fails at byte|may follow|may not stand/"
    wait_for(shown.page, f"{words}.test(document.querySelector('.why-answer').textContent)")


def test_text_that_is_typed_in_is_explained(shown: Shown) -> None:
    shown.pick("json_schema", SCHEMA)
    shown.generate()
    shown.page.click("#edit")
    shown.page.fill("#edit-text", '{"name": "Ada", "level": "middle"}')
    shown.page.wait_for_selector('#explanation[data-matches="false"]')
    assert shown.page.inner_text("#explanation .rest").startswith("middle")
    shown.page.fill("#edit-text", '{"name": "Ada", "level": "low"}')
    shown.page.wait_for_selector('#explanation[data-matches="true"]')


def test_tools_are_called(shown: Shown) -> None:
    shown.pick("none", "")
    shown.page.evaluate("document.querySelector('#tools').open = true")
    shown.page.fill("#tools-text", json.dumps([TOOL]))
    shown.page.select_option("#tool-choice", "required")
    shown.page.fill("#prompt-0", "What is the weather in Oslo?")
    shown.generate()
    shown.page.click("#tab-value")
    value = shown.page.inner_text("[role=tabpanel]:visible")
    assert "forecast" in value
    assert "city" in value
    shown.page.wait_for_selector('[data-path="/calls/0/arguments/city"] .confidence')
    shown.picture("value")


def test_the_prompt_is_what_was_sent(shown: Shown) -> None:
    shown.pick("json_schema", SCHEMA)
    shown.page.fill("#prompt-0", "Who was the first programmer?")
    shown.generate()
    shown.page.click("#tab-prompt")
    text = shown.page.inner_text("#panel-prompt pre")
    assert "Who was the first programmer?" in text
    assert "<|im_start|>" in text
    shown.page.click("#tab-timing")
    assert re.search(r"[0-9,]+ masks, [0-9.,]+ µs", shown.page.inner_text("#panel-timing"))


def test_the_budget_shows_where_the_end_comes(shown: Shown) -> None:
    shown.pick("json_schema", SCHEMA)
    tokens = shown.generate()
    shown.page.click("#tab-budget")
    shown.page.wait_for_selector("#budget .right")
    shown.page.evaluate(
        """budget => {
          const slider = document.getElementById("budget-slider");
          slider.value = budget;
          slider.dispatchEvent(new Event("input", {bubbles: true}));
        }""",
        len(tokens) - 2,
    )
    shown.page.wait_for_selector("#budget .closes, #budget .wrong")
    shown.picture("budget")
    shown.page.evaluate(
        """() => {
          const slider = document.getElementById("budget-slider");
          slider.value = 1;
          slider.dispatchEvent(new Event("input", {bubbles: true}));
        }"""
    )
    shown.page.wait_for_selector("#budget .wrong")
    assert "No answer fits" in shown.page.inner_text("#budget .wrong")


def test_three_ways_are_compared(shown: Shown) -> None:
    shown.pick("short", "name, level: low|high")
    shown.set_number("max_tokens", 40)
    shown.page.click("#compare")
    for way in ("plain", "constrained", "draft"):
        shown.page.wait_for_selector(f'.columns [data-way="{way}"][data-status="done"]')
    assert shown.page.locator('.columns [data-way="plain"] mark').count() > 0
    shown.picture("compare")


def test_a_run_is_exported_and_opens_without_a_server(shown: Shown, browser: Browser, tmp_path: Path) -> None:
    shown.pick("json_schema", SCHEMA)
    tokens = shown.generate()
    shown.page.click("#tab-take")
    with shown.page.expect_download() as download:
        shown.page.click("#export")
    file = tmp_path / "run.html"
    download.value.save_as(file)
    context = browser.new_context(offline=True)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(file.as_uri())
    page.wait_for_selector('.token[data-index="0"]')
    assert page.locator("#answer .token").count() == len(tokens)
    page.hover('.token[data-index="1"]')
    assert str(tokens[1]["token"]) in page.inner_text("#details")
    require_no_sideways_scrolling(page)
    assert complaints == []
    context.close()


def test_a_request_is_taken_along_as_code_and_as_a_link(shown: Shown, browser: Browser) -> None:
    shown.pick("lark", 'start: "yes" | "no"')
    shown.page.fill("#prompt-0", "Ähnlich? 🙂")
    shown.page.click("#tab-take")
    for kind in ("Python", "curl", "openai"):
        options = shown.page.locator("#snippet-kind option").all_inner_texts()
        shown.page.select_option("#snippet-kind", next(each for each in options if kind.lower() in each.lower()))
        snippet = shown.page.inner_text("#snippet")
        assert "Ähnlich" in snippet or "\\u00c4hnlich" in snippet
        if kind != "curl":
            compile(snippet, "snippet", "exec")
    shown.page.click("#copy-link")
    wait_for(shown.page, "location.hash.length > 10")
    context = browser.new_context()
    again = Shown(context.new_page(), shown.page.url)
    assert again.page.input_value("#language-text") == 'start: "yes" | "no"'
    assert again.page.input_value("#prompt-0") == "Ähnlich? 🙂"
    assert again.complaints == []
    context.close()


@pytest.mark.parametrize(
    "shown", [{"viewport": PHONE, "color_scheme": "dark"}, {}], indirect=True, ids=["dark phone", "desktop"]
)
def test_it_is_accessible_and_fits_the_screen(shown: Shown) -> None:
    shown.pick("json_schema", SCHEMA)
    shown.wait_for_check("valid")
    is_dark = shown.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    colour = shown.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (max(map(int, re.findall(r"\d+", colour)[:3])) < 64) == is_dark
    shown.require_accessible()
    shown.generate()
    shown.page.click('.token[data-index="3"]')
    shown.require_accessible()
    for tab in ("value", "prompt", "timing", "budget", "compare", "take"):
        shown.page.click(f"#tab-{tab}")
        if tab in ("value", "budget", "take"):
            shown.require_accessible()
        width = shown.page.evaluate("document.documentElement.scrollWidth")
        assert width <= shown.page.evaluate("innerWidth"), tab


def test_text_full_of_markup_does_nothing(shown: Shown) -> None:
    title = shown.page.title()
    shown.pick("regex", re.escape(HOSTILE))
    shown.page.fill("#prompt-0", HOSTILE)
    shown.generate()
    assert shown.page.evaluate("Playground.store.state.run.text") == HOSTILE
    for tab in ("answer", "value", "prompt", "timing", "budget", "compare", "take"):
        shown.page.click(f"#tab-{tab}")
        assert shown.page.locator("[role=tabpanel]:visible img").count() == 0
        require_no_sideways_scrolling(shown.page)
    assert shown.page.title() == title
    shown.pick("json_schema", json.dumps({"properties": {HOSTILE: {"const": HOSTILE, "minimum": HOSTILE}}}))
    shown.wait_for_check("invalid")
    assert shown.page.locator("#errors img").count() == 0
    require_no_sideways_scrolling(shown.page)
    assert shown.page.title() == title


def test_a_server_with_keys_asks_for_one(browser: Browser, model: constrain.Model) -> None:
    with serving(Application(served_as(model, "small"), Settings(api_keys=("secret",)))) as url:
        context = browser.new_context()
        page = context.new_page()
        page.set_default_timeout(MILLISECONDS)
        page.goto(url)
        page.wait_for_selector("#key", state="visible")
        page.fill("#key", "wrong")
        page.click("#key-form button.primary")
        wait_for(page, "document.querySelector('#key-wrong').textContent !== ''")
        page.fill("#key", "secret")
        page.click("#key-form button.primary")
        page.wait_for_selector("#generate:not([disabled])")
        page.click("#generate")
        page.wait_for_selector('#summary[data-status="done"]')
        context.close()
