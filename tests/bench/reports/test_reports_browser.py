"""The pages in a real browser: no error, no request, everything works by mouse and keyboard, on a phone, for everyone.

Needs Debian's chromium and chromium-driver and the extra `browser`; RECALLBENCH_AXE is axe.min.js of axe-core from npm.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_support import evaluated, run_of, small_set, traced, written
from test_reports_files import Many
from test_reports_hostile import HOSTILE, hostile_set

from recallbench.cli import _run
from recallbench.datasets.model import Question

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")


class Browser:
    """A headless Chromium with one page, asked through its driver."""

    def __init__(self) -> None:
        selenium = pytest.importorskip("selenium", reason="the extra `browser` is not installed")
        del selenium
        if CHROMIUM is None or DRIVER is None:
            pytest.skip("chromium and chromedriver are not installed (Debian: chromium, chromium-driver)")
        from selenium.webdriver import Chrome, ChromeOptions
        from selenium.webdriver.chrome.service import Service

        options = ChromeOptions()
        options.binary_location = CHROMIUM
        for one in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--lang=en-US"):
            options.add_argument(one)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = Chrome(options=options, service=Service(DRIVER))
        self.driver.set_script_timeout(60)
        self.size(1280, 900)

    def size(self, width: int, height: int, phone: bool = False) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    def open(self, path: Path) -> None:
        """Open a page from disk and wait until it says that all is drawn."""
        self.driver.get(path.as_uri())
        self.js("try { localStorage.clear() } catch {}")
        self.settle()
        for one in ("browser", "performance"):
            self.driver.get_log(one)
        self.driver.get("about:blank")
        self.driver.get(path.as_uri())
        self.settle()

    def settle(self) -> None:
        """Wait until the page has drawn what was asked of it last."""
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, 60).until(
            lambda _: self.js("return document.documentElement.dataset.ready === 'true'")
        )

    def js(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def click(self, selector: str) -> None:
        self.js("document.querySelector(arguments[0]).click()", selector)
        self.settle()

    def choose(self, label: str, option: str) -> None:
        """Choose an option of the filter with this label."""
        self.js(
            "const found = [...document.querySelectorAll('[data-section]:not([hidden]) .filters label')]"
            ".find((one) => one.firstChild.textContent === arguments[0]).querySelector('select');"
            "found.value = [...found.options].find((one) => one.textContent === arguments[1]).value;"
            "found.dispatchEvent(new Event('change'))",
            label,
            option,
        )

    def rows(self, column: int) -> list[str]:
        """The texts of a column of the table of questions; details left out."""
        return self.js(
            "const rows = '[data-section]:not([hidden]) table.questions > tbody > tr:not(.detail)';"
            "return [...document.querySelectorAll(rows)].map((one) => one.children[arguments[0]].textContent.trim())",
            column,
        )

    def errors(self) -> list[str]:
        """What the page wrote to the console."""
        return [one["message"] for one in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """What was asked of anyone but the page itself; data and blobs lie inside it."""
        events = [json.loads(one["message"])["message"] for one in self.driver.get_log("performance")]
        urls = [one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"]
        return [one for one in urls if not one.startswith(("data:", "blob:", "about:"))]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = Browser()
    yield found
    found.driver.quit()


def plain_set() -> tuple[Question, ...]:
    return tuple(
        Question(
            id=f"q-{i:02}",
            text=f"question {i} {'apple' if i % 3 else 'pear'}",
            relevant={"abcdefgh"[i % 8]: 1, "abcdefgh"[(i + 1) % 8]: 1},
            forbidden=("abcdefgh"[(i + 2) % 8],),
            categories=("even" if i % 2 == 0 else "odd",),
            lang="zh" if i % 4 == 0 else "en",
        )
        for i in range(60)
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sets, with texts, a sweep and scenarios: everything that a page can hold."""
    folder = tmp_path_factory.mktemp("report")
    questions = plain_set()
    letters = "abcdefgh"
    old = [letters[(i + 3) % 8 :] + letters[: (i + 3) % 8] for i in range(60)]
    new = [letters[i % 8] + letters[(i + 5) % 8] if i % 5 else letters[(i + 4) % 8] for i in range(60)]
    losses = [{one: "kept" if one in new[i] else "out-fused" for one in q.relevant} for i, q in enumerate(questions)]
    trace = [(i, stage, 1, next(iter(q.relevant))) for i, q in enumerate(questions) for stage in ("bm25", "final")]
    runs = [run_of("old", old), run_of("new", new, **traced(losses, trace))]
    first = written(folder / "1", evaluated(small_set(questions), runs), baseline="old", text=True)
    from dataclasses import replace

    other = evaluated(small_set(questions[:9]), [run_of("only", new[:9])])
    other = replace(other, labelled=replace(other.labelled, info=replace(other.labelled.info, name="second")))
    second = written(folder / "2", other, text=True)
    row = {"method": "rrf", "k": 60, "pool": 20, "RR": 0.5, "like_override": False}
    sweep = {"dataset": "small", "sentence": "s", "reported": {"RR": 0.5}, "rows": [row, {**row, "k": 1, "RR": 0.6}]}
    (folder / "sweep.json").write_text(json.dumps(sweep), encoding="utf-8")
    result = {"scenario": "s-1", "system": "mneme", "kind": "bug", "title": {"en": "Stale", "zh": "陈旧"},
              "implementation": "reference", "variant": "fixed", "outcome": "failed"}  # fmt: skip
    (folder / "scenarios.json").write_text(json.dumps([result]), encoding="utf-8")
    options = ["--sweep", str(folder / "sweep.json"), "--scenarios", str(folder / "scenarios.json"), "--include-text"]
    out = folder / "a report.html"
    assert _run(["report", str(first), str(second), *options, "--html", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    questions, memories = hostile_set()
    lists = [[memory.id, memories[place - 1].id] for place, memory in enumerate(memories)]
    systems = [run_of(HOSTILE["script"], lists), run_of(HOSTILE["bidi"], [one[::-1] for one in lists])]
    run = written(folder, evaluated(small_set(questions, memories), systems), text=True)
    assert _run(["report", str(run), "--include-text"]) == 0
    return run / "report.html"


# Opening


def test_a_page_opens_from_disk_without_error_or_request(browser: Browser, report: Path) -> None:
    browser.open(report)
    assert browser.requests() == [report.as_uri()]
    assert browser.errors() == []
    assert browser.js("return document.querySelectorAll('[data-section]:not([hidden]) [data-chart] svg').length") >= 6
    assert len(browser.rows(0)) == 50


def test_every_part_can_be_used_without_error_or_request(browser: Browser, report: Path) -> None:
    browser.open(report)
    browser.driver.get_log("performance")
    for selector in (
        "[data-set-lang=zh]",
        "[data-set-lang=en]",
        "[data-run='1']",
        "[data-run='0']",
        "[data-look]",
        "table.sortable thead button",
        "[data-sort=id]",
        "[data-sort=b]",
        "[data-question]",
    ):
        browser.click(selector)
    for theme in ("dark", "light", "auto"):
        set_theme(browser, theme)
    assert browser.errors() == []
    assert browser.requests() == []


def set_theme(browser: Browser, name: str) -> None:
    browser.js(
        "const one = document.querySelector('[data-set-theme]'); one.value = arguments[0];"
        "one.dispatchEvent(new Event('change'))",
        name,
    )
    browser.settle()


# The table of questions


def test_filters(browser: Browser, report: Path) -> None:
    browser.open(report)
    browser.choose("Category", "odd")
    assert {int(one[-2:]) % 2 for one in ids(browser)} == {1}
    assert len(ids(browser)) == 30
    browser.choose("Language", "zh")
    assert ids(browser) == []  # zh questions are even
    assert "No question fits" in browser.js("return document.querySelector('[role=status]').textContent")
    browser.js("document.querySelector('.filters button').click()")
    assert len(ids(browser)) == 50
    browser.choose("Show", "worse")
    assert all(one.startswith("−") for one in browser.rows(5))
    assert ids(browser)
    browser.choose("Show", "something lost")
    assert all(browser.rows(6))


def ids(browser: Browser) -> list[str]:
    return browser.js(
        "const found = document.querySelectorAll('[data-section]:not([hidden]) [data-question]');"
        "return [...found].map((one) => one.textContent.slice(2))"
    )


def test_search_by_id_and_word(browser: Browser, report: Path) -> None:
    from selenium.webdriver.common.by import By

    browser.open(report)
    field = browser.driver.find_element(By.CSS_SELECTOR, "[data-section]:not([hidden]) input[type=search]")
    field.send_keys("Q-07")
    assert ids(browser) == ["q-07"]
    field.clear()
    field.send_keys("pear")
    assert sorted(ids(browser)) == [f"q-{i:02}" for i in range(0, 60, 3)]


def test_sort_both_ways(browser: Browser, report: Path) -> None:
    browser.open(report)
    browser.click("[data-sort=id]")
    assert ids(browser) == [f"q-{i:02}" for i in range(50)]
    assert (
        browser.js("return document.querySelector('th:has([data-sort=id])').getAttribute('aria-sort')") == "ascending"
    )
    browser.click("[data-sort=id]")
    assert ids(browser)[0] == "q-59"
    browser.click("[data-sort=a]")
    values = [float(one) for one in browser.rows(3)]
    assert values == sorted(values)


def test_pages(browser: Browser, report: Path) -> None:
    browser.open(report)
    browser.click("[data-sort=id]")
    browser.js("[...document.querySelectorAll('.pager button')].find((one) => one.textContent === 'Next').click()")
    assert ids(browser) == [f"q-{i}" for i in range(50, 60)]


def test_a_row_opens_to_both_lists_and_the_trace(browser: Browser, report: Path) -> None:
    browser.open(report)
    browser.click("[data-sort=id]")
    browser.click("[data-question='7']")
    shown = browser.js("return document.querySelector('tr.detail').innerText")
    assert browser.js("return document.querySelector(\"[data-question='7']\").getAttribute('aria-expanded')") == "true"
    # q-07: relevant h and a, forbidden b; `new` returned h and e, `old` c to h, then a and b.
    assert "question 7 apple" in shown
    lists = browser.js(
        "return [...document.querySelectorAll('tr.detail .list')].map((list) =>"
        "[...list.querySelectorAll('.memory')].map((one) => one.firstChild.textContent))"
    )
    assert lists == [list("he"), list("cdefghab")]
    kinds = browser.js("return [...document.querySelectorAll('tr.detail .list li.relevant')].length")
    assert kinds == 3
    assert "bm25 1 → final 1" in shown
    assert "out-fused" in shown
    assert "text of h" in shown


def test_the_questions_to_look_at_open(browser: Browser, report: Path) -> None:
    browser.open(report)
    wanted = browser.js("return document.querySelector('[data-look]').dataset.look")
    browser.choose("Category", "odd")
    browser.click("[data-look]")
    assert browser.js("return document.activeElement.dataset.question") == wanted
    assert browser.js("return document.querySelectorAll('tr.detail').length") == 1


def test_the_table_of_results_sorts(browser: Browser, report: Path) -> None:
    browser.open(report)
    first = "return document.querySelector('table.sortable tbody th').firstChild.textContent"
    browser.click("table.sortable thead button")
    best = browser.js(first)
    browser.click("table.sortable thead button")
    assert browser.js(first) != best


# Language, theme, keyboard


def test_language(browser: Browser, report: Path) -> None:
    browser.open(report)
    assert browser.js("return document.documentElement.lang") == "en"
    browser.click("[data-set-lang=zh]")
    assert browser.js("return document.documentElement.lang") == "zh"
    shown = browser.js("return document.querySelector('#main').innerText")
    assert "先看这几个问题" in shown
    assert "Look at these questions first" not in shown
    assert "没有答案" not in shown
    assert "不是" not in browser.js("return document.title")
    chart = browser.js("return document.querySelector('[data-chart^=pareto]').textContent")
    assert "每次回答的估计 token 数" in chart
    browser.click("[data-set-lang=en]")
    assert "Look at these questions first" in browser.js("return document.querySelector('#main').innerText")


def test_themes_change_the_page_and_its_charts(browser: Browser, report: Path) -> None:
    browser.open(report)
    seen = {}
    for theme in ("light", "dark"):
        set_theme(browser, theme)
        page = browser.js("return getComputedStyle(document.body).backgroundColor")
        label = browser.driver.execute_async_script(
            "const done = arguments[0]; const wanted = getComputedStyle(document.documentElement)"
            ".getPropertyValue('--soft').trim(); const look = () => {"
            "const one = document.querySelector('[data-chart=forest] .role-axis-label text');"
            "one && one.getAttribute('fill') === wanted ? done(wanted) : requestAnimationFrame(look); }; look();"
        )
        seen[theme] = (page, label)
    assert seen["light"][0] != seen["dark"][0]
    assert seen["light"][1] != seen["dark"][1]


def test_the_theme_of_the_system_is_followed(browser: Browser, report: Path) -> None:
    for scheme in ("light", "dark"):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.open(report)
        assert scheme in browser.js("return getComputedStyle(document.documentElement).colorScheme")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_everything_is_reached_by_keyboard(browser: Browser, report: Path) -> None:
    """Tab goes through every control that can be seen, in the order of the page; each shows that it has the focus."""
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    browser.open(report)
    wanted = browser.js(
        "return [...document.querySelectorAll('a[href], button, select, input, summary, [tabindex=\"0\"]')]"
        ".filter((one) => one.checkVisibility() && !one.disabled).map((one, i) => { one.dataset.stop = i; return i; })"
    )
    reached = []
    for _ in wanted:
        ActionChains(browser.driver).send_keys(Keys.TAB).perform()
        stop, outline = browser.js(
            "const one = document.activeElement; return [one.dataset.stop, getComputedStyle(one).outlineStyle]"
        )
        reached.append(int(stop))
        assert outline != "none", stop
    assert reached == wanted
    # A row opens with Enter and keeps the focus.
    browser.js("document.querySelector('[data-question]').focus()")
    ActionChains(browser.driver).send_keys(Keys.ENTER).perform()
    assert browser.js("return document.activeElement.getAttribute('aria-expanded')") == "true"


# A phone, paper, everyone


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_no_horizontal_scroll_on_a_phone(lang: str, browser: Browser, report: Path, hostile: Path) -> None:
    browser.size(390, 844, phone=True)
    try:
        for page in (report, hostile):
            browser.open(page)
            browser.click(f"[data-set-lang={lang}]")
            browser.click("[data-question]")
            browser.js("for (const one of document.querySelectorAll('details')) one.open = true")
            assert browser.js("return document.documentElement.scrollWidth") <= 390
    finally:
        browser.size(1280, 900)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_opened_question_is_read_on_a_phone_without_scrolling_sideways(
    lang: str, browser: Browser, report: Path, hostile: Path
) -> None:
    """The page itself never scrolled; the table within it did, and cut the lists at its right edge."""
    browser.size(390, 844, phone=True)
    try:
        for page in (report, hostile):
            browser.open(page)
            browser.click(f"[data-set-lang={lang}]")
            browser.click("[data-question]")
            table = "const one = document.querySelector('table.questions').parentElement;"
            assert browser.js(f"{table} return one.scrollWidth - one.clientWidth") <= 0
            right = "return document.querySelector('tr.detail .list').getBoundingClientRect().right"
            assert browser.js(right) <= browser.js(f"{table} return one.getBoundingClientRect().right")
    finally:
        browser.size(1280, 900)


def test_a_change_without_a_loss_says_from_which_rank_to_which(browser: Browser, tmp_path: Path) -> None:
    questions = [Question(id=f"q{i}", text="", relevant={"a": 1}) for i in range(3)]
    systems = [run_of("old", ["abc", "bca", "bac"]), run_of("new", ["bca", "abc", "bac"])]
    folder = written(tmp_path, evaluated(small_set(questions), systems), baseline="old")
    assert _run(["report", str(folder)]) == 0
    browser.open(folder / "report.html")
    browser.choose("System", "new")
    browser.choose("against", "old")
    browser.click("[data-sort=id]")
    assert browser.rows(6) == ["rank 1 → 3", "rank 3 → 1", ""]


def test_it_can_be_printed(browser: Browser, report: Path) -> None:
    browser.open(report)
    set_theme(browser, "dark")
    printed = browser.driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert base64.b64decode(printed["data"]).startswith(b"%PDF")
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert browser.js("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert not browser.js("return document.querySelector('.controls').checkVisibility()")
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def axe() -> str:
    named = os.environ.get("RECALLBENCH_AXE")
    if not named:
        pytest.skip("RECALLBENCH_AXE is not set: it names axe.min.js of axe-core (npm pack axe-core)")
    return Path(named).read_text(encoding="utf-8")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_nothing_serious(theme: str, width: int, browser: Browser, report: Path) -> None:
    source = axe()
    browser.size(width, 900, phone=width == 390)
    try:
        browser.open(report)
        set_theme(browser, theme)
        browser.click("[data-question]")
        browser.js("for (const one of document.querySelectorAll('details')) one.open = true")
        # Through the driver: the page's own policy lets no script in from outside.
        browser.js(source)
        found = browser.driver.execute_async_script(
            "const done = arguments[0], only = {resultTypes: ['violations']};"
            "axe.run(document, only).then((found) => done(found.violations))"
        )
    finally:
        browser.size(1280, 900)
    serious = [
        (one["id"], one["help"], [node["html"][:200] for node in one["nodes"][:3]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []


# Texts of others


def test_hostile_texts_run_nothing_and_break_nothing(browser: Browser, hostile: Path) -> None:
    browser.open(hostile)
    for q in range(len(HOSTILE)):
        browser.click(f"[data-question='{q}']")
    browser.js("for (const one of document.querySelectorAll('details')) one.open = true")
    assert browser.js("return window.attacked === undefined")
    assert browser.errors() == []
    assert browser.js("return document.querySelectorAll('img, iframe').length") == 0
    assert browser.js("return document.querySelectorAll('script:not([type])').length") == 2  # ours, and the charts'
    shown = browser.js("return document.querySelector('table.questions').innerText")
    assert HOSTILE["element"] in shown
    assert "[U+202E]txt.exe[U+2066]" in shown
    assert not set("\u202e\u2066\u2028\x00") & set(shown)
    # 20,000 characters lie in a box of their own, whole, and the page is no wider for them.
    boxes = browser.js(
        "const texts = [...document.querySelectorAll('tr.detail > td > .text')];"
        "return texts.map((one) => [one.textContent.length, one.clientHeight])"
    )
    assert max(length for length, _ in boxes) == 20_000
    assert max(height for _, height in boxes) < 300
    assert browser.js("return document.documentElement.scrollWidth") <= 1280


def test_it_stays_usable_at_twenty_thousand_questions(browser: Browser, tmp_path: Path) -> None:
    run = written(tmp_path, Many(20_000, 2, 5_000, 10).evaluation())
    assert _run(["report", str(run)]) == 0
    browser.open(run / "report.html")
    assert browser.js("return document.querySelectorAll('table.questions > tbody > tr').length") == 50
    assert "20000" in browser.js("return document.querySelector('[role=status]').textContent")
    took = browser.js(
        "const t = performance.now(); document.querySelector('[data-sort=a]').click();"
        "const field = document.querySelector('input[type=search]'); field.value = 'q19999';"
        "field.dispatchEvent(new Event('input')); return performance.now() - t"
    )
    assert ids(browser) == ["conv-9-q19999"]
    # Until everything is drawn, charts too: the event `load` comes before the data are unpacked.
    opened = browser.js("return performance.getEntriesByName('ready')[0].startTime")
    size = (run / "report.html").stat().st_size / 1e6
    print(f"20,000 questions: {size:.1f} MB, drawn after {opened:.0f} ms, sort and search {took:.0f} ms")


def test_the_history_works_in_a_browser(browser: Browser, tmp_path: Path) -> None:
    from test_reports_history import put, summary

    for place, (mean, labels) in enumerate(((0.4, "l1"), (0.5, "l2"))):
        put(tmp_path / f"v{place}", summary(mean, labels))
        put(tmp_path / f"w{place}", summary(mean, labels, name="second"))
    assert _run(["report", "history", str(tmp_path)]) == 0
    browser.open(tmp_path / "history.html")
    browser.click("[data-run='1']")
    browser.click("[data-set-lang=zh]")
    assert browser.errors() == []
    assert browser.requests() == [(tmp_path / "history.html").as_uri()]
    assert browser.js("return document.querySelectorAll('[data-section]:not([hidden]) svg').length") == 1
