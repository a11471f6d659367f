# SPDX-License-Identifier: Apache-2.0
"""Each HTML page in a real browser, at desktop and phone width, light and dark: silent console, no request, nothing cut
off, links that lead somewhere, filters that filter. With ASSAY_PICTURES=FOLDER, a picture of each for people."""
import os
import pathlib

import browser
import pytest
from conftest import samples

RULES = pathlib.Path(__file__).with_name("page_rules.js").read_text()
DESKTOP, PHONE = 1280, 390
VIEWS = {"desktop": (DESKTOP, False), "desktop-dark": (DESKTOP, True), "phone": (PHONE, False), "phone-dark": (PHONE, True)}
OPEN = "document.querySelectorAll('details').forEach(one => one.open = true)"


@pytest.fixture(scope="session")
def chromium():
    program = browser.program()
    if program is None:
        # A run that is there for the pages must not pass without them.
        if os.environ.get("ASSAY_REQUIRE_BROWSER"):
            pytest.fail("no chromium, and ASSAY_REQUIRE_BROWSER is set")
        pytest.skip("no chromium: the pages were not looked at (apt-get install chromium)")
    one = browser.Browser(program)
    yield one
    one.close()


@pytest.fixture
def show(chromium):
    pages = []

    def page(path, width=DESKTOP):
        pages.append(browser.Page(chromium, path, width))
        return pages[-1]

    yield page
    for one in pages:
        one.close()


def troubles(page):
    return page.ask(RULES) + page.complaints() + page.requests()


def picture(page, html, name):
    if folder := os.environ.get("ASSAY_PICTURES"):
        pathlib.Path(folder).mkdir(exist_ok=True)
        page.picture(pathlib.Path(folder) / f"{html.stem}-{name}.png")


def test_page(html, show):
    page = show(html)
    found = []
    for unfolded in ("", "-open"):
        if unfolded:
            page.ask(OPEN)
        for name, (width, dark) in VIEWS.items():
            page.view(width, dark)
            found += [f"{name}{unfolded}: {line}" for line in page.ask(RULES)]
            picture(page, html, name + unfolded)
    assert found + page.complaints() + page.requests() == []


def named(stem):
    return next(path for path in samples("html") if path.stem == stem)


def cards(page):
    return page.ask("[...document.querySelectorAll('.card')].filter(card => card.checkVisibility()).length")


def type_words(page, text):
    page.ask(f"words.value = {text!r}; words.dispatchEvent(new Event('input'))")


def choose(page, kernel):
    page.ask(f"kernel.value = {kernel!r}; kernel.dispatchEvent(new Event('input'))")


@pytest.mark.parametrize("stem, kernel, other", [
    ("check-findings", "reference_merge_state", "reference_merge_states"),
    ("gate-hostile", "k<1>", "a_kernel_of_a_rather_long_name_v2"),
])
def test_filters(stem, kernel, other, show):
    page = show(named(stem))
    all_cards = cards(page)
    rows = "[...new Set([...document.querySelectorAll('tr[data-kernel]')].filter(row => row.checkVisibility()).map(row => row.dataset.kernel))]"
    assert all_cards >= 2 and page.ask(rows) == [kernel, other] and page.ask("shown.textContent") == ""
    choose(page, kernel)
    assert 0 < cards(page) < all_cards and page.ask(rows) == [kernel]
    assert page.ask("shown.textContent") == f"{cards(page)} of {all_cards} shown"
    choose(page, "")
    type_words(page, "WITHIN_budget")
    assert 0 < cards(page) < all_cards
    type_words(page, "no such words")
    assert cards(page) == 0 and page.ask("shown.textContent") == f"0 of {all_cards} shown"
    type_words(page, "")
    assert cards(page) == all_cards and page.complaints() == []


def test_links_show_what_they_name(show):
    page = show(named("check-findings"), PHONE)
    links = page.ask("[...document.querySelectorAll('a')].map(link => link.getAttribute('href'))")
    assert links == ["#finding-1", "#finding-2"]
    # A filter may hide where a link leads.
    type_words(page, "no such words")
    for href in links:
        page.ask(f"document.querySelector('a[href=\"{href}\"]').click()")
        page.ask("new Promise(done => setTimeout(done, 100))")
        top = page.ask(f"document.querySelector('{href}').checkVisibility() && document.querySelector('{href}').getBoundingClientRect().top")
        assert top is not False and -1 <= top < 900, f"{href} at {top}"
    assert page.complaints() == []


@pytest.mark.parametrize("body, why", [
    ("<script>console.error('loud')</script>", "loud"),
    ("<script>none()</script>", "Uncaught"),
    ("<script>fetch('https://example.org/x').catch(() => 0)</script>", "https://example.org/x"),
    ("<img src='other.png'>", "other.png"),
    ("<p style='width:2000px'>wide</p>", "px wide"),
    ("<a href='#gone'>link</a>", "a link to nowhere"),
    ("<p style='color:#999;background:#fff'>pale</p>", "contrast"),
    ("<p id='a'></p><p id='a'></p>", "two elements"),
])
def test_the_rules_see(body, why, show, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(f"<!DOCTYPE html><html lang=en><title>t</title><meta name=viewport content='width=device-width'><link rel=icon href='data:,'><body>{body}")
    page = show(path, PHONE)
    page.ask("new Promise(done => setTimeout(done, 100))")
    assert any(why in line for line in troubles(page)), troubles(page)
