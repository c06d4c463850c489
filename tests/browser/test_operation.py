"""What an operator looks at: a worker, its dead letters, the timeline of what has happened."""

import hashlib
import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import App
from tests.browser.letters import CONTENT, TRACE, send_a_dead_letter
from tests.browser.pages import Looks, looking

pytestmark = pytest.mark.timeout(300)

_TIMELINE = "window.mbTimelineOfPage"


def opened(page: Page, path: str) -> Page:
    page.goto(path)
    expect(page.locator("[data-drawn]")).to_have_count(1)
    return page


def test_a_first_visit_offers_three_things_that_work(app: App, browser: Browser) -> None:
    with looking(browser, app.url) as page:
        opened(page, "/timeline")
        offers = page.locator(".mb-timeline .mb-empty a.mb-btn")
        expect(offers).to_have_count(3)
        targets = [str(offer.get_attribute("href")) for offer in offers.all()]
        for target, offered in zip(targets, ("dialog", "Start simulation", "dialog"), strict=True):
            opened(page, target)
            there = page.get_by_role("dialog") if offered == "dialog" else page.get_by_role("button", name=offered)
            expect(there).to_be_visible()
        opened(page, "/timeline")
        page.locator(".mb-timeline .mb-empty a.mb-link").click()
        expect(page.get_by_text("Recorded with")).to_be_visible()


def test_a_row_of_the_fleet_opens_the_worker(app: App, browser: Browser) -> None:
    with looking(browser, app.url) as page:
        opened(page, "/fleet")
        page.locator(".mb-fleet-workers tr[data-row='storage']").click()
        drawer = page.locator(".mb-drawer")
        expect(drawer.get_by_role("heading", name="storage", exact=True)).to_be_visible()
        expect(drawer).to_contain_text(re.compile(r"heartbeat \d+ s ago"))
        expect(drawer).to_contain_text("No failures on the timeline")
        expect(drawer.get_by_label("End of its log")).to_be_visible()
        expect(page).to_have_url(re.compile("worker=storage"))
        page.reload()
        expect(drawer.get_by_role("heading", name="storage", exact=True)).to_be_visible()
        page.keyboard.press("Escape")
        expect(drawer).to_be_hidden()


def test_dead_letters_of_one_cause_are_told_together_and_what_to_do(app: App, browser: Browser) -> None:
    ids = [send_a_dead_letter(app.shell.data_dir, app.amqp_url) for _ in range(2)]
    with looking(browser, app.url) as page:
        opened(page, "/fleet")
        cause = page.locator(".mb-cause")
        expect(cause).to_have_count(1)
        expect(page.locator(".mb-health")).to_contain_text("Dead letters: 2")
        expect(cause).to_contain_text("Replay once the file is there")
        for _, missed in ids:
            missed.parent.mkdir(parents=True, exist_ok=True)
            missed.write_bytes(CONTENT)
        cause.get_by_role("button", name="Replay 2").click()
        expect(page.locator(".mb-letter")).to_have_count(0)
    with looking(browser, app.url, Looks(size="phone")) as page:
        # Without trouble the figures come first.
        opened(page, "/fleet")
        expect(page.locator(".mb-kpi", has_text="Dead letters").locator(".mb-kpi-value")).to_have_text("0")
        expect(page.locator(".mb-has-dead")).to_have_count(0)
        assert _top(page, ".mb-kpis") < _top(page, ".mb-fleet-dead")


def test_a_dead_letter_is_mended_and_replayed(app: App, browser: Browser) -> None:
    artifact_id, missed = send_a_dead_letter(app.shell.data_dir, app.amqp_url)
    # The file that is there now has other bytes than the message says.
    other = "Каток закрыт до весны.\n".encode()
    missed.parent.mkdir(parents=True, exist_ok=True)
    missed.write_bytes(other)
    with looking(browser, app.url, Looks(size="phone")) as page:
        opened(page, "/fleet")
        expect(page.locator(".mb-letter")).to_have_count(1)
        expect(page.locator(".mb-has-dead")).to_have_count(1)
        assert _top(page, ".mb-fleet-dead") < _top(page, ".mb-kpis")
    with looking(browser, app.url) as page:
        opened(page, "/fleet")
        page.locator(".mb-letter").get_by_role("button", name="Show").click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_role("button", name="Edit").click()
        data = dialog.get_by_label("Data of the message")
        wrong = json.loads(data.input_value())
        data.fill("[1]")
        dialog.get_by_role("button", name="Replay").click()
        expect(dialog.get_by_role("alert")).to_have_text("This is not a JSON object.")
        wrong["manifest"] |= {"checksum": f"sha256:{hashlib.sha256(other).hexdigest()}", "size_bytes": len(other)}
        data.fill(json.dumps(wrong))
        dialog.get_by_role("button", name="Replay").click()
        expect(page.locator(".mb-letter")).to_have_count(0)
        opened(page, f"/artifacts/{artifact_id}?trace={TRACE}")
        expect(page.locator(".mb-artifact-body").first).to_contain_text("Каток закрыт до весны.")


def test_the_timeline_begins_with_all_events_in_view_and_follows_new_ones(app: App, browser: Browser) -> None:
    app.say("sveta", "Завтра утром покажу макет.")
    with looking(browser, app.url) as page:
        opened(page, "/timeline?user=sveta")
        page.wait_for_function(f"{_TIMELINE}?.drawn?.length && {_TIMELINE}.fitted")
        assert _are_in_view(page)
        app.say("sveta", "И смету тоже.")
        page.wait_for_function(f"{_TIMELINE}.marks.filter((mark) => mark.name === 'message_sent').length === 2")
        assert _are_in_view(page)
        # The scale is in sight, whichever lanes there are.
        expect(page.locator(".mb-ticks span").first).to_be_visible()


def test_a_link_brings_its_event_into_the_middle_whatever_its_range(app: App, browser: Browser) -> None:
    app.say("tonya", "Решили взять второго подрядчика.")
    with looking(browser, app.url) as page:
        opened(page, "/timeline?user=tonya")
        page.wait_for_function(f"{_TIMELINE}?.marks?.length")
        event_id = page.evaluate(f"{_TIMELINE}.marks[0].id")
        opened(page, f"/timeline?event={event_id}")
        expect(page.locator(".mb-drawer .mb-json").first).to_contain_text(event_id)
        middle = f"""(() => {{
            const timeline = {_TIMELINE}, mark = timeline.shown().find((one) => one.id === '{event_id}');
            const [from, to] = timeline.window();
            return mark && (mark.end - from) / (to - from);
        }})()"""
        page.wait_for_function(f"(({middle}) ?? 0) > 0.02 && ({middle}) < 0.98")
        assert page.evaluate(f"{_TIMELINE}.selected") == event_id


def test_the_timeline_is_grouped_by_trace_and_shows_any_dates(app: App, browser: Browser) -> None:
    app.say("ulya", "Доброе утро!")
    with looking(browser, app.url) as page:
        opened(page, "/timeline?user=ulya")
        page.get_by_role("button", name="Traces").click()
        lane = page.locator(".mb-lane", has_text="conv_ulya")
        expect(lane).to_be_visible()
        lane.get_by_role("link").click()
        expect(page.locator(".mb-chip", has_text="conv_ulya")).to_be_visible()
        opened(page, "/timeline")
        page.get_by_role("button", name="Choose dates").click()
        dialog = page.get_by_role("dialog")
        day = datetime.now(UTC) - timedelta(days=40)
        dialog.get_by_label("From").fill(f"{day:%Y-%m-%dT%H:%M}")
        dialog.get_by_label("To").fill(f"{day - timedelta(days=1):%Y-%m-%dT%H:%M}")
        dialog.get_by_role("button", name="Show").click()
        expect(dialog.get_by_role("alert")).to_have_text("The end must be after the beginning.")
        dialog.get_by_label("To").fill(f"{day + timedelta(days=1):%Y-%m-%dT%H:%M}")
        dialog.get_by_role("button", name="Show").click()
        page.wait_for_url("**from=**")
        expect(page.get_by_text("No events in this range")).to_be_visible()
        expect(page.get_by_role("button", name="Live")).to_be_hidden()


def _are_in_view(page: Page) -> bool:
    script = f"""() => {{
        const [from, to] = {_TIMELINE}.window();
        return {_TIMELINE}.marks.every((mark) => mark.t >= from && mark.end <= to);
    }}"""
    return bool(page.evaluate(script))


def _top(page: Page, selector: str) -> float:
    return float(page.locator(selector).evaluate("(element) => element.getBoundingClientRect().top"))
