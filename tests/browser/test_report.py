"""The report's page in a real browser: from the disk, alone, with hostile names in it, on a phone,
in the dark and on paper.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.conftest import heard
from tests.cli.command import call
from tests.pipeline.by_hand import a_refusal, a_verdict, a_warning, changed, write_tables
from tests.pipeline.report.histories import a_history
from tests.support.forked import COMMAND

SCRIPT = "</svg></script><script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
NAMES = (
    SCRIPT,
    "$x$ {{ 7 * 7 }} &amp; co",
    '=HYPERLINK("http://x")',
    "\u05e9\u05dc\u05d5\u05dd \u202eevil",
    "\N{PARTY POPPER} \u65e5\u672c",
    "n" * 249,
)
PHONE: ViewportSize = {"width": 390, "height": 844}
PATIENCE_SECONDS = 600  # a busy machine starts Spark in minutes

pytestmark = pytest.mark.timeout(PATIENCE_SECONDS)


@pytest.fixture(name="out", scope="module")
def report_of_the_installed_command(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """On a history with names that want to be more."""
    folder = tmp_path_factory.mktemp("report")
    events = a_history()
    for number, name in enumerate(NAMES):
        for repeat in range(60):
            warned = a_verdict("violated", rule=name, message=name, findings=(a_warning(name, name),))
            refusal = a_refusal(1000 + 100 * number + repeat, name, cluster_id="cluster-one", principal=name, epoch=4)
            events.append(changed(refusal, policy=warned, software=name, time_ms=events[-1].time_ms))
    write_tables(folder / "tables", events)
    options = ("--tables", "tables", "--out", "report.html", "--master", "local[2]")
    outcome = call("pipeline", "report", *options, folder=folder, within=PATIENCE_SECONDS)
    assert outcome.code == 0, outcome
    assert "report.html" in outcome.stdout
    return folder / "report.html"


@pytest.fixture(name="page")
def opened(tab: Page, out: Path) -> Iterator[Page]:
    """At the end nothing may have gone wrong in it, and nothing may have been asked of anybody."""
    faults, asked = list[str](), list[str]()
    with (
        heard(tab, "pageerror", lambda error: faults.append(str(error))),
        heard(tab, "console", lambda message: faults.append(message.text)),
        heard(tab, "request", lambda request: asked.append(request.url)),
    ):
        tab.goto(out.as_uri())
        yield tab
    assert faults == []
    assert [url for url in asked if not url.startswith("data:")] == [out.as_uri()]


def test_each_question_has_its_answer_and_its_plot(page: Page) -> None:
    """Twelve questions and the clusters, each with a sentence; a plot and a table wherever there is
    something (P-3b).
    """
    expect(page.locator("section h2")).to_have_count(13)
    for section in page.locator("main section").all()[:11]:
        expect(section.locator("svg.wide")).to_be_visible()
        expect(section.locator("svg.narrow")).to_be_hidden()
        assert section.locator("tbody tr").count() > 0
        assert len(section.locator(".answer").inner_text()) > 20
    expect(page.locator("#faults .answer")).to_have_text("Nothing: each line is an event, and no event is missing.")


def test_names_are_only_names(page: Page) -> None:
    """What looks like HTML, SVG, a template or mathematics stands there as text, in plots, legends,
    tables and sentences (P-3b).
    """
    assert page.title().startswith("Audit report")
    assert page.locator("main img, main script, svg script, svg foreignObject").count() == 0
    for name in NAMES[:3]:
        assert page.locator("#refusals td", has_text=name).count() > 0, name
        assert page.locator("#principals svg.wide text", has_text=name).count() > 0, name
    expect(page.locator("#clients svg.narrow text", has_text="\u2026").first).to_be_attached()
    assert page.locator("#refusals td", has_text="n" * 249).count() > 0
    assert "\u202e" not in page.content()


def test_the_browser_itself_forbids_what_the_page_does_not_need(tab: Page, out: Path) -> None:
    """Even if a text became an element, the browser loads no other script, no style and no picture,
    and sends no request (P-3b).
    """
    tab.goto(out.as_uri())
    policy = tab.locator("meta[http-equiv='Content-Security-Policy']").get_attribute("content")
    assert policy is not None and policy.startswith("default-src 'none'") and "unsafe" not in policy
    blocked = tab.evaluate(
        "async () => {"
        " const said = []; addEventListener('securitypolicyviolation', (event) => said.push(event.effectiveDirective));"
        " const script = document.createElement('script'); script.text = 'window.ran = 1'; document.body.append(script);"
        " const image = document.createElement('img'); image.src = 'http://127.0.0.1:1/x'; document.body.append(image);"
        " await fetch('http://127.0.0.1:1/').catch(() => 0); await new Promise((done) => setTimeout(done));"
        " return [window.ran === undefined, said.sort()]; }"
    )
    assert blocked == [True, ["connect-src", "img-src", "script-src-elem"]]


def test_a_table_is_downloaded_as_csv(page: Page, out: Path) -> None:
    """Each table has a link to all its rows, which is the file beside the page, without asking
    anybody (P-3a).
    """
    links = page.locator("a.download")
    assert links.count() == page.locator("main table").count()
    for link in (links.first, links.last):
        with page.expect_download() as download:
            link.click()
        beside = out.parent / "report-csv" / download.value.suggested_filename
        assert Path(download.value.path()).read_bytes() == beside.read_bytes()


def test_a_title_sorts_its_table(page: Page) -> None:
    """A click sorts by the column, numbers the largest first; another one turns it round; by
    keyboard, too.
    """
    cells = page.locator("#principals tbody tr td:nth-child(2)")
    title = page.locator("#principals thead button").nth(1)
    title.click()
    falling = [int(text.replace(",", "")) for text in cells.all_inner_texts()]
    assert falling == sorted(falling, reverse=True)
    title.press("Enter")
    assert [int(text.replace(",", "")) for text in cells.all_inner_texts()] == falling[::-1]
    expect(page.locator("#principals thead th").nth(1)).to_have_attribute("aria-sort", "ascending")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_in_either_colour(tab: Page, out: Path, scheme: Literal["light", "dark"]) -> None:
    """Nothing needs scrolling sideways, plots are drawn for it with letters of 11 pixels at least,
    and texts stand out (P-3b).
    """
    tab.set_viewport_size(PHONE)
    tab.emulate_media(color_scheme=scheme)
    tab.goto(out.as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tab.evaluate("document.querySelector('h1').textContent = 'policies/' + 'n'.repeat(240)")
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    expect(tab.locator("#refusals svg.narrow")).to_be_visible()
    expect(tab.locator("#refusals svg.wide")).to_be_hidden()
    smallest = tab.evaluate(
        "Math.min(...[...document.querySelectorAll('svg.narrow text')].map((text) =>"
        " parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a))"
    )
    assert smallest >= 11
    for text in ("ink", "soft"):
        assert tab.evaluate(CONTRAST, [f"--{text}", "--card"]) >= 4.5
    for series in range(8):
        assert tab.evaluate(CONTRAST, [f"--s{series}", "--card"]) >= 1.8


CONTRAST = """([one, other]) => {
  const light = (name) => {
    const probe = document.createElement('canvas').getContext('2d');
    probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    const [r, g, b] = [1, 3, 5].map((at) => parseInt(probe.fillStyle.slice(at, at + 2), 16) / 255)
      .map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [low, high] = [light(one), light(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}"""
"""The contrast of two of the page's colours, as WCAG defines it."""


def test_paper_is_white_and_whole(tab: Page, out: Path) -> None:
    """Printed from a dark screen it is dark on white, without what can only be clicked, and nothing
    is cut off at the side (P-3b).
    """
    tab.set_viewport_size({"width": 720, "height": 1000})
    tab.emulate_media(color_scheme="dark")
    tab.goto(out.as_uri())
    tab.emulate_media(media="print")
    assert tab.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--ink').trim()") == "#1a2029"
    expect(tab.locator("nav")).to_be_hidden()
    expect(tab.locator("#refusals svg.wide")).to_be_visible()
    assert tab.evaluate(
        "[...document.querySelectorAll('table')].every((table) => table.getBoundingClientRect().right <= innerWidth)"
    )
    assert len(tab.pdf(format="A4")) > 10_000


def test_the_figures_stand_beside_it(out: Path) -> None:
    """JSON has the names as they are, and CSV guards those that a spreadsheet would calculate
    (P-3a).
    """
    document = json.loads(out.with_suffix(".json").read_text())
    assert {row["principal"] for row in document["tables"]["refusals_by_principal"]["rows"]} >= set(NAMES)
    csv = (out.parent / "report-csv" / "refusals_by_principal.csv").read_text()
    assert "\"'=HYPERLINK" in csv
    assert sorted(path.stem for path in (out.parent / "report-csv").iterdir()) == sorted(document["tables"])


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--out", "nowhere/report.html"), "There is no folder"),
        (("--out", "report.html", "--since", "yesterday"), "'yesterday' is neither a time such as"),
    ],
)
def test_what_is_typed_wrongly_is_found_at_once(tmp_path: Path, arguments: tuple[str, ...], complaint: str) -> None:
    """What is typed wrongly is found before Spark is started: there is no Java in this
    environment.
    """
    outcome = call(
        "pipeline",
        "report",
        "--tables",
        "t",
        *arguments,
        folder=tmp_path,
        variables={"PATH": str(COMMAND.parent), "JAVA_HOME": ""},
    )
    assert outcome.code == 2
    assert complaint in " ".join(outcome.stderr.split())
