"""The page in a real browser: live, searchable, usable by keyboard and on a phone, and deaf to what
names say.
"""

from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, ViewportSize, expect

from tests.browser.conftest import heard
from tests.support.cluster import MiniCluster, controller_id
from tests.support.http import ask, create, delete
from tests.support.wire import Wire

HOSTILE = '"><img src=x onerror="document.title=1"><script>document.title=2</script>'
BROKER = 4
PHONE: ViewportSize = {"width": 360, "height": 740}


def test_it_shows_the_cluster(page: Page, cluster: MiniCluster) -> None:
    """The page shows the nodes with their state, the controller among them, and the figures."""
    expect(page.locator("#health")).to_have_text("ready")
    expect(page.locator("#nodes tr")).to_have_count(3)
    expect(page.locator("#controller")).to_have_text(f"node {controller_id(cluster)}")
    expect(page.locator("#nodes tr", has_text="controller")).to_have_count(1)
    expect(page.locator("#live")).to_have_text("live")


def test_trouble_of_the_audit_log_stands_at_the_top(page: Page) -> None:
    """What the state tells of it is seen as text above everything else, and is gone when it is
    over.
    """
    show = """(audit) => {
      showState({...known, audit});
      const notes = Array.from(document.querySelectorAll("main > #audit:first-child > .note"));
      return notes.map((note) => note.innerText);
    }"""
    assert page.evaluate(show, ["Node 1: <b>full</b>", "Node 2: full"]) == ["Node 1: <b>full</b>", "Node 2: full"]
    assert page.evaluate(show, []) == []


def test_ten_thousand_topics_are_paged(page: Page) -> None:
    """Topics are shown a hundred at a time, forth and back, and the whole number is told."""
    expect(page.locator("#topics tr")).to_have_count(100)
    expect(page.locator("#range")).to_contain_text("of 10,0")
    expect(page.locator("#previous")).to_be_disabled()
    page.click("#next")
    expect(page.locator("#range")).to_contain_text("101\u2013200")
    page.click("#previous")
    expect(page.locator("#range")).to_contain_text("1\u2013100")


def test_the_search_finds_by_a_part(page: Page) -> None:
    """What is typed anywhere after a / is searched for at the server; nothing found is said."""
    page.keyboard.press("/")
    page.keyboard.type("C-0123")
    expect(page.locator("#topics tr")).to_have_count(10)
    expect(page.locator("#topics tr").first).to_contain_text("topic-01230")
    page.fill("#search", "there is none of this name")
    expect(page.locator("#no-topics")).to_be_visible()


def test_it_is_live(page: Page, cluster: MiniCluster) -> None:
    """What is created and refused appears without a reload, with its reason; figures and the list
    of topics follow.
    """
    before = int(page.inner_text("#topic-count").replace(",", ""))
    create(cluster, "live-one", "orders")
    first = page.locator("#decisions li").first
    expect(first).to_contain_text("POLICY_VIOLATION")
    expect(first).to_contain_text("A topic begins with <b>its team</b>: team-orders.")
    expect(first).to_contain_text("policy Teams")
    expect(page.locator("#topic-count")).to_have_text(f"{before + 1:,}")
    page.fill("#search", "live-")
    expect(page.locator("#topics tr")).to_have_count(1)
    create(cluster, "live-two")
    expect(page.locator("#topics tr")).to_have_count(2)


def test_only_refusals_can_be_shown(page: Page, cluster: MiniCluster) -> None:
    """The tick leaves out what was carried out."""
    create(cluster, "fine", "orders-2")
    expect(page.locator("#decisions li", has_text="fine")).to_have_count(1)
    page.check("#refused-only")
    expect(page.locator("#decisions .badge.good")).to_have_count(0)
    expect(page.locator("#decisions li", has_text="orders-2")).to_have_count(1)


def test_what_would_be_refused_and_rules_that_never_fired_are_shown(page: Page, cluster: MiniCluster) -> None:
    """What a rule only warns of is neither green nor red, stays with the refusals, and has its
    reason; the rules in force are listed with what they found, also if that is nothing.
    """
    create(cluster, "too-wide", partitions=5)
    page.check("#refused-only")
    row = page.locator("#decisions li", has_text="too-wide")
    expect(row.locator(".badge.warn")).to_have_text("would be refused")
    expect(row).to_contain_text("5 partitions are more than 4.")
    expect(row).to_contain_text("rule small")
    expect(page.locator("#rules tr", has_text="never fires")).to_contain_text("never")
    expect(page.locator("#rules tr", has_text="small")).to_contain_text("warn1")


def test_a_topic_opens_with_its_history_by_keyboard(page: Page, cluster: MiniCluster) -> None:
    """Tab and Enter open a topic with partitions and history, Escape closes it; its address opens
    it again.
    """
    create(cluster, "keyed")
    create(cluster, "keyed")
    page.fill("#search", "keyed")
    expect(page.locator("#topics tr")).to_have_count(1)
    page.focus("#search")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#topic-partitions tr")).to_have_count(1)
    expect(page.locator("#topic-history li")).to_have_count(2)
    expect(page.locator("#topic-history li").first).to_contain_text("Topic 'keyed' already exists.")
    address = page.url
    page.keyboard.press("Escape")
    expect(page.locator("#topic")).to_be_hidden()
    page.goto("about:blank")
    page.goto(address)
    expect(page.locator("#topic-name")).to_have_text("keyed")


def test_what_is_gone_is_found(page: Page, cluster: MiniCluster) -> None:
    """A deleted topic is found by a part of its name, and tells its history out of the audit log,
    its end included.
    """
    create(cluster, "bygone-Topic")
    delete(cluster, "bygone-Topic")
    create(cluster, *(f"orders-{number}" for number in range(250)))  # nobody remembers it now
    page.fill("#search", "gone-t")
    expect(page.locator("#no-topics")).to_be_visible()
    found = page.locator("#deleted-topics button", has_text="bygone-Topic")
    page.click("#find-deleted")
    expect(page.locator("#deleted-source")).to_contain_text("from the audit log")
    found.click()
    expect(page.locator("#topic-facts")).to_have_text("There is no such topic now.")
    expect(page.locator("#topic-history li")).to_have_count(3)
    expect(page.locator("#topic-history li").first).to_contain_text("cleaned up")
    expect(page.locator("#history-source")).to_contain_text("From the audit log")
    page.keyboard.press("Escape")
    page.fill("#search", "orders-77")
    page.click("#named")
    expect(page.locator("#topic-name")).to_have_text("orders-77")
    expect(page.locator("#topic-history")).to_contain_text("POLICY_VIOLATION")


def test_decisions_are_turned_back(page: Page, cluster: MiniCluster) -> None:
    """Page by page through the last ones, then through the audit log, and forth again; news do not
    move what is read.
    """
    create(cluster, *(f"back-{number:03}" for number in range(210)))
    expect(page.locator("#decisions li").first).to_contain_text("back-209")
    expect(page.locator("#newer")).to_be_disabled()
    page.click("#older")
    expect(page.locator("#decisions li").first).to_contain_text("back-189")
    create(cluster, "news")
    expect(page.locator("#decided")).to_have_text("")
    expect(page.locator("#decisions li").first).to_contain_text("back-189")
    for _ in range(8):
        page.click("#older")
    expect(page.locator("#decisions li").first).to_contain_text("back-029")
    page.click("#older")
    expect(page.locator("#decision-source")).to_have_text("from the audit log")
    expect(page.locator("#decisions li", has_text="back-000")).to_have_count(1)
    for _ in range(10):
        page.click("#newer")
    expect(page.locator("#decisions li").first).to_contain_text("news")


def test_names_are_only_names(page: Page, cluster: MiniCluster) -> None:
    """What looks like HTML in a topic's name, or in a policy's words, is shown as it is and does
    nothing.
    """
    create(cluster, "turned\u202edenrut", HOSTILE[:200], "orders-<i>")
    expect(page.locator("#decisions")).to_contain_text(HOSTILE[:60])
    expect(page.locator("#decisions")).to_contain_text("turned\\u202edenrut")
    page.locator("#decisions button", has_text="img src=x").first.click()
    expect(page.locator("#topic-name")).to_have_text(HOSTILE[:200])
    assert page.locator("main img, main b, main i, dialog img, main script").count() == 0
    assert page.title() == "minicontroller"


def test_no_name_turns_what_stands_beside_it(page: Page, cluster: MiniCluster) -> None:
    """Marks of direction are shown by their number wherever a name is: in links, beside what is no
    topic, in the heading, in what is told.
    """
    name = "right\u202etfel"
    create(cluster, name)
    with Wire(cluster.bootstrap.split(",")[0]) as wire:
        wire.ask("IncrementalAlterConfigs", 0, {"resources": [{"resource_type": BROKER, "resource_name": f"1{name}"}]})
    shown = page.locator("#decisions li", has_text="broker 1right\\u202etfel")
    expect(shown).to_have_count(1)
    page.locator("#decisions button", has_text="tfel").first.click()
    expect(page.locator("#topic-name")).to_have_text("right\\u202etfel")
    expect(page.locator("#topic-history li")).to_have_count(1)
    page.click("#close")
    page.fill("#search", name)
    expect(page.locator("#named")).to_have_text("History of right\\u202etfel")
    page.click("#named")
    expect(page.locator("#topic-history li")).to_have_count(1)
    assert "\u202e" not in page.evaluate("document.body.textContent")


def test_nothing_is_loaded_from_elsewhere(tab: Page, cluster: MiniCluster) -> None:
    """Opening the page asks this address and no other; the browser itself refuses scripts that are
    not the page's own.
    """
    asked: list[str] = []
    with heard(tab, "request", lambda request: asked.append(request.url)):
        tab.goto(cluster.http)
        tab.wait_for_selector("#topics tr")
    hosts = {urlsplit(url).netloc for url in asked if not url.startswith("data:")}
    assert hosts == {urlsplit(cluster.http).netloc}
    evaluated = tab.evaluate(
        "() => { const s = document.createElement('script');"
        " try { s.text = 'window.ran = 1'; document.body.append(s); } catch {} return window.ran === undefined; }"
    )
    assert evaluated


def test_the_largest_figures_fit_their_cards(page: Page) -> None:
    """The epoch of a gateway, which is a number of seconds since 1970, is seen in full at every
    width.
    """
    page.evaluate("showState({...known, epoch: 1_800_000_000, topics: 200_000, partitions: 1_000_000})")
    for width in (320, 560, 700, 860, 1024, 1400):
        page.set_viewport_size({"width": width, "height": 700})
        cut_off = page.evaluate("""() => Array.from(document.querySelectorAll(".figures div"))
            .filter((card) => card.scrollWidth > card.clientWidth).map((card) => card.innerText)""")
        assert cut_off == [], width
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_in_either_colour(tab: Page, cluster: MiniCluster, scheme: Literal["light", "dark"]) -> None:
    """On a narrow screen nothing is cut off or needs scrolling sideways, also with a topic open;
    texts stand out from their ground.
    """
    tab.set_viewport_size(PHONE)
    tab.emulate_media(color_scheme=scheme)
    tab.goto(cluster.http)
    tab.wait_for_selector("#topics tr")
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    tab.locator("#topics button").first.click()
    tab.wait_for_selector("#topic-partitions tr")
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert tab.evaluate("document.querySelector('dialog').scrollWidth <= document.querySelector('dialog').clientWidth")
    for selector in ("body", ".soft", ".badge.good", "button.link", "th"):
        assert contrast(tab, selector) >= 4.5, selector


def test_it_says_when_the_connection_is_lost(tab: Page, cluster: MiniCluster) -> None:
    """What is shown is not taken for the present when nobody answers any more."""
    tab.goto(cluster.http)
    expect(tab.locator("#live")).to_have_text("live")
    tab.route("**/events", lambda route: route.abort())
    tab.evaluate("news.close(); news.dispatchEvent(new Event('error'))")  # open, it might bring news after that
    expect(tab.locator("#live")).to_contain_text("lost")
    expect(tab.locator("#health")).to_have_text("unknown")
    assert ask(cluster, "/health/live").status == 200


def contrast(page: Page, selector: str) -> float:
    """WCAG's ratio between a text and the first ground behind it that is not transparent."""
    ratio: float = page.evaluate(
        """(selector) => {
          const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
          const light = (color) => numbers(color).slice(0, 3).map((part) => part / 255)
            .map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
            .reduce((sum, part, index) => sum + part * [0.2126, 0.7152, 0.0722][index], 0);
          const element = document.querySelector(selector);
          let ground = element;
          while (numbers(getComputedStyle(ground).backgroundColor)[3] === 0) ground = ground.parentElement;
          const [a, b] = [light(getComputedStyle(element).color), light(getComputedStyle(ground).backgroundColor)];
          return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        }""",
        selector,
    )
    return ratio
