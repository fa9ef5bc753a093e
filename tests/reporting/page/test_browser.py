"""Report pages in a real browser: no requests, readable in both schemes, on any width, by keyboard, in print."""

import re
import shutil
from contextlib import contextmanager
from itertools import pairwise
from urllib.parse import unquote

import pytest

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is on PATH")

# WCAG 2, level AA: minimum contrast of text with its background.
READABLE = 4.5
NAMES = ("index", "stop_jostling", "agg", "method", "cost", "provenance")
UNFOLD = "document.querySelectorAll('details').forEach((part) => { part.open = true; })"
# Every text with its colour and the nearest background behind it, as [red, green, blue] from 0 to 255.
COLOURS = """() => {
  const parts = (text) => text.match(/[0-9.]+/g).map(Number);
  const behind = (element) => {
    for (let part = element; part; part = part.parentElement) {
      const colour = parts(getComputedStyle(part).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = new Map();
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.tagName === "SCRIPT" || !element.checkVisibility()) continue;
    const colours = [parts(getComputedStyle(element).color), behind(element)];
    found.set(JSON.stringify(colours), [colours, element.tagName + "." + element.className]);
  }
  return [...found.values()];
}"""


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def opened(browser, page, name="index", **options):
    """A page in a window, and its problems: messages, errors, requests to other hosts."""
    context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | options))
    tab, wrong = context.new_page(), []
    tab.on("console", lambda message: wrong.append(message.text))
    tab.on("pageerror", lambda error: wrong.append(str(error)))
    tab.on("request", lambda request: None if request.url[:5] in ("file:", "data:") else wrong.append(request.url))
    tab.goto(page.path.with_name(f"{name}.html").as_uri())
    yield tab
    context.close()
    assert wrong == []


def contrast(one, other):
    """Contrast of two colours, 1 to 21, after WCAG 2."""

    def luminance(colour):
        linear = [c / 255 / 12.92 if c / 255 <= 0.04045 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_is_that_of_the_standard():
    assert contrast((0, 0, 0), (255, 255, 255)) == pytest.approx(21)
    assert contrast((0x77, 0x77, 0x77), (255, 255, 255)) == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize(("name", "number"), [("stop_jostling", 2), ("agg", 1)])
def test_every_figure_is_visible_and_hostile_text_harmless(browser, page, name, number):
    with opened(browser, page, name) as tab:
        assert tab.evaluate("window.hostile") is None
        pictures = tab.locator("figure img")
        assert pictures.count() == number
        for picture in pictures.all():
            picture.scroll_into_view_if_needed()
            assert picture.is_visible()
            assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 100


@pytest.mark.parametrize(("width", "scripts"), [(390, True), (390, False), (820, True), (1280, True)])
@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_wider_than_the_window(browser, page, name, width, scripts):
    size = {"width": width, "height": 844}
    with opened(browser, page, name, viewport=size, java_script_enabled=scripts) as tab:
        tab.evaluate(UNFOLD)
        assert tab.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_every_text_is_readable(browser, page, scheme, width):
    for name in NAMES:
        with opened(browser, page, name, color_scheme=scheme, viewport={"width": width, "height": 844}) as tab:
            tab.evaluate(UNFOLD)
            faint = [(where, pair) for pair, where in tab.evaluate(COLOURS) if contrast(*pair) < READABLE]
            assert faint == []
            dark = tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(21, 24, 28)"
            assert dark == (scheme == "dark")
            for picture in tab.locator("figure img").all():  # drawings are made for white paper
                assert picture.evaluate("image => getComputedStyle(image).backgroundColor") == "rgb(255, 255, 255)"


def test_letters_of_figures_are_readable_on_a_phone(browser, page):
    with opened(browser, page, "stop_jostling", viewport={"width": 390, "height": 844}) as tab:
        for picture in tab.locator("figure img").all():
            shown = picture.evaluate("image => image.getBoundingClientRect().width")
            drawing = unquote(picture.get_attribute("src"))
            width = float(re.search(r"viewBox='0 0 ([\d.]+)", drawing)[1])
            smallest = min(map(float, re.findall(r"font-size: ([\d.]+)px", drawing)))
            assert smallest * shown / width > 10.9


def test_the_first_column_and_the_navigation_bar_stay_visible(browser, page):
    with opened(browser, page, "agg", viewport={"width": 390, "height": 844}) as tab:
        frame = tab.locator("#agg-table3").locator("xpath=..").locator(".wide").first
        frame.scroll_into_view_if_needed()
        before = frame.locator("tbody th").first.bounding_box()["x"]
        assert frame.evaluate("part => { part.scrollLeft = 200; return part.scrollLeft; }") > 100
        assert frame.locator("tbody th").first.bounding_box()["x"] == pytest.approx(before, abs=1)
        assert tab.locator(".bar").bounding_box()["y"] == 0


def shown(tab):
    """Sentences of the visible claims."""
    rows = (
        "rows => rows.filter((row) => row.checkVisibility()).map((row) => row.querySelector('td').textContent.trim())"
    )
    return tab.locator(".claims tr.claim").evaluate_all(rows)


def test_claims_are_filtered_by_verdict_paper_and_kind_without_scripts(browser, page):
    with opened(browser, page, java_script_enabled=False) as tab:
        everything = shown(tab)
        assert len(everything) > 40
        tab.get_by_role("checkbox", name=re.compile("^inconclusive")).uncheck()
        decided = shown(tab)
        assert 0 < len(decided) < len(everything)
        tab.get_by_role("checkbox", name="mathematics").uncheck()
        assert len(shown(tab)) < len(decided)
        tab.get_by_role("checkbox", name="Stop Jostling (Turumtaev 2025)").uncheck()
        assert not tab.locator(".of-stop-jostling tr").first.is_visible()
        assert not tab.get_by_role("searchbox").is_visible()


def test_claims_are_filtered_by_text_with_the_keyboard_alone(browser, page):
    with opened(browser, page, "stop_jostling") as tab:
        tab.keyboard.press("Tab")
        assert tab.evaluate("document.activeElement.className") == "skip"
        assert tab.locator(".skip").bounding_box()["y"] >= 0
        for _ in range(60):
            tab.keyboard.press("Tab")
            if tab.evaluate("document.activeElement.type") == "search":
                break
        tab.keyboard.type("ISOTROPY_lr")
        (only,) = shown(tab)
        assert only.startswith("Every thresholded model has a higher LR I(W)")
        assert tab.locator(".claims output").inner_text() == "1 of 44 claims"
        outline = tab.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid"


def test_a_row_of_the_first_page_leads_to_its_claim(browser, page):
    with opened(browser, page) as tab:
        tab.locator("tr.claim a").first.click()
        tab.wait_for_load_state()
        place = tab.evaluate("location.hash.slice(1)")
        assert place.startswith("claim-stop_jostling.")
        assert tab.locator(f'[id="{place}"]').bounding_box()["y"] < 900


def test_the_skip_link_leads_past_the_contents(browser, page):
    with opened(browser, page) as tab:
        tab.keyboard.press("Tab")
        tab.keyboard.press("Enter")
        assert tab.evaluate("document.activeElement.id") == "content"


def test_a_link_unfolds_its_target(browser, page):
    with opened(browser, page, "stop_jostling") as tab:
        place = tab.locator("#deviation-stop-jostling-s2")
        assert not place.is_visible()
        claim = tab.locator('[id="claim-stop_jostling.min_p"]')
        claim.locator("summary").click()
        claim.locator("a", has_text="S2").click()
        assert place.is_visible()


@pytest.mark.parametrize("name", NAMES)
def test_the_words_of_the_page_for_screen_readers(browser, page, name):
    with opened(browser, page, name) as tab:
        levels = tab.locator("h1, h2, h3, h4").evaluate_all("heads => heads.map((head) => Number(head.tagName[1]))")
        assert levels.count(1) == 1
        assert all(after <= before + 1 for before, after in pairwise(levels))
        assert tab.get_by_role("navigation", name="Pages").count() == 1


def test_on_a_phone_claims_are_cards_and_still_rows_of_a_table(browser, page):
    with opened(browser, page, "stop_jostling", viewport={"width": 390, "height": 844}) as tab:
        assert tab.get_by_role("table", name=re.compile("^Claims of")).count() == 1
        row = tab.get_by_role("row", name=re.compile("min-p sampling"))
        assert row.get_by_role("cell").count() == 6
        for chip in tab.locator(".counts .chip").all():  # verdicts are counted in full
            assert chip.bounding_box()["x"] + chip.bounding_box()["width"] <= 390


def test_print_view_leaves_out_machinery_and_unfolds_the_rest(browser, page):
    with opened(browser, page, "agg", color_scheme="dark") as tab:
        remark = tab.locator("#agg-table3").locator("xpath=..").locator("details:not(.machinery) li").first
        assert not remark.is_visible()
        tab.emulate_media(media="print")
        assert not tab.locator("nav").is_visible()
        assert not tab.locator(".filter").first.is_visible()
        assert not tab.locator(".machinery").first.is_visible()
        assert remark.is_visible()
        assert tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert tab.pdf(format="A4").startswith(b"%PDF")
