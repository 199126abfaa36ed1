#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The console in a real browser: what it shows agrees with the status, a keyboard alone can cut a link and bring
down a region, and the page asks nobody else for anything. With TIDEMARK_SHOTS=FOLDER it leaves pictures there.
"""

import http.client
import json
import os
import re
import tempfile
import unittest

from browser import BACKSPACE, ENTER, MISSING, SHIFT, TAB, Browser
from cluster import EUROPE, JAPAN, REGIONS, USA, ClusterTest, main, wait_until

SHOTS = os.environ.get("TIDEMARK_SHOTS")
# Each text that is shown and the colour behind it, the nearest ancestor's that has one.
CONTRASTS = """
const parse = (text) => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
  .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
  .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
const found = [];
for (const node of document.querySelectorAll("body *:not(svg *)")) {
  const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
  const box = node.getBoundingClientRect();
  if (!own || box.width < 2 || box.bottom < 0) continue;
  let back = node;
  while (back && (parse(getComputedStyle(back).backgroundColor)[3] ?? 1) === 0) back = back.parentElement;
  const [a, b] = [light(parse(getComputedStyle(node).color)), light(parse(getComputedStyle(back).backgroundColor))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) found.push(`${node.textContent.trim().slice(0, 40)}: ${ratio.toFixed(2)}`);
}
return found;
"""


def make_run(home, name, time, result, verdict):
    """What `tidemark chaos run` leaves behind, as far as the console looks into it."""
    place = os.path.join(home, "runs", name, time)
    os.makedirs(place)
    with open(os.path.join(place, "result.json"), "w") as file:
        json.dump({"version": 1, "result": result, "exit": 0, "verdict": verdict, "run": {}}, file, indent=1)
    with open(os.path.join(place, "report.html"), "w") as file:
        file.write(f"the report of {name}")


@unittest.skipIf(MISSING, f"no browser to test with: {MISSING} is not installed")
class Console(ClusterTest):
    """One browser, one cluster and one table that is in all of its Regions."""

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser().__enter__()
        cls.addClassCleanup(cls.browser.__exit__)
        cls.home = tempfile.TemporaryDirectory(prefix="tidemark-console-")
        cls.addClassCleanup(cls.home.cleanup)
        make_run(cls.home.name, "loss", "20260102T000000Z", "wrong", "wrong: <b>3</b> writes are lost")
        make_run(cls.home.name, "split", "20260101T000000Z", "pass", "pass: nothing was lost")
        super().setUpClass()
        try:
            cls.shared = cls.cluster.make_global("shared")
        except BaseException:
            cls.tearDownClass()
            raise

    def setUp(self):
        super().setUp()
        self.browser.show(1280)
        self.visit()

    def visit(self):
        self.browser.open(self.cluster.control + "/")
        wait_until("the page shows the cluster", lambda: self.browser.text("#main h3"))

    def _heal(self):
        for link in self.answer("/v1/links"):
            if link["state"] == "cut":
                self.ask("POST", f"/v1/links/{link['from']}/{link['to']}/heal")

    def see(self, selector, text):
        """Waits until the page shows it. A page that comes into view asks at once, which saves us its second."""
        def shown():
            self.browser.run("document.dispatchEvent(new Event('visibilitychange'))")
            return text in (self.browser.text(selector) or "")
        return wait_until(f"{selector} says {text}", shown, poll=0.05)

    def card(self, region):
        return f'article[aria-labelledby="region-{region}"]'

    def row(self, a, b):
        """The words in a link's line."""
        return self.browser.run(
            "return [...document.querySelectorAll('#links tbody tr')].map((row) => row.innerText)"
            ".find((text) => text.replace(/\\s+/g, ' ').startsWith(arguments[0])) ?? ''", f"{a} → {b}")

    def tab_to(self, name, holding=0):
        """Presses Tab until what is called so has the focus."""
        passed = []
        for _ in range(80):
            self.browser.press(TAB, holding=holding)
            passed.append(self.browser.focused())
            if passed[-1] == name:
                return passed
        raise AssertionError(f"Tab never came to {name}: {passed}")

    def link(self, a, b):
        return next(link for link in self.answer("/v1/links") if (link["from"], link["to"]) == (a, b))

    def region(self, name):
        return next(region for region in self.answer("/v1/regions") if region["name"] == name)

    def assert_quiet(self):
        self.assertEqual(self.browser.said, [])
        foreign = [url for url in self.browser.fetched if not url.startswith(self.cluster.control + "/")]
        self.assertEqual(foreign, [])

    def test_shows_the_cluster(self):
        # What it fetches is heard of with the answer to whatever is asked of the browser.
        wait_until("it asks again by itself", lambda: self.browser.text("#main") and
                   self.browser.fetched.count(self.cluster.control + "/v1/console") > 1)
        self.see("#figure-serving", "3 of 3")
        names = self.browser.run("return [...document.querySelectorAll('#regions h3')].map((h) => h.textContent)")
        self.assertEqual(names, list(REGIONS))
        self.assertEqual(self.browser.run("return document.querySelectorAll('#links tbody tr').length"), 6)
        self.assertEqual(self.browser.run("return document.querySelectorAll('#map path.link').length"), 6)
        self.assertEqual(self.browser.role("#map svg"), "image")
        self.assertEqual(self.browser.role("#links"), "table")
        self.assertEqual(self.browser.role("#log"), "log")
        wait_until("the table is shown as eventual", lambda: re.search(
            rf"{self.shared}\s+eventual\s+{USA}", self.browser.text("#tables")))
        self.assert_quiet()

    def test_cuts_and_heals_a_link_by_keyboard(self):
        self.tab_to(f"Cut {USA} to {EUROPE}")
        self.browser.press(ENTER)
        self.see("#log", f"The link {USA} to {EUROPE} is cut.")
        self.assertEqual(self.link(USA, EUROPE)["state"], "cut")
        self.assertEqual(self.link(EUROPE, USA)["state"], "up")
        self.assertIn("cut", self.row(USA, EUROPE))
        self.assertIn(f"Cut: {USA} to {EUROPE}.",
                      self.browser.run("return document.querySelector('#map svg').getAttribute('aria-label')"))
        self.client(USA).put(self.shared, pk="a", v=1)
        wait_until("the write that waits is counted", lambda: re.search(r"\b1\b", self.row(USA, EUROPE)))
        self.assertEqual(self.browser.focused(), f"Heal {USA} to {EUROPE}")
        self.browser.press(ENTER)
        self.see("#log", f"The link {USA} to {EUROPE} is healed.")
        self.assertEqual(self.link(USA, EUROPE)["state"], "up")
        self.assert_quiet()

    def test_what_only_one_region_has_is_at_risk(self):
        self.region_to("isolate", JAPAN, back="rejoin")
        for n in range(7):
            self.client(JAPAN).put(self.shared, pk=f"k{n}", v=n)
        self.see("#figure-risk", "7")
        self.see("#note-risk", f"only in {JAPAN}")
        self.region_to("kill", JAPAN, back="restart")
        self.see(self.card(JAPAN), "figures as last heard")
        self.assertIn("7", self.browser.text(f"{self.card(JAPAN)} .facts dd"))

    def test_delays_a_link_by_keyboard(self):
        self.tab_to(f"Delay from {EUROPE} to {JAPAN}, in milliseconds")
        self.browser.press(BACKSPACE, *"250", ENTER)
        self.see("#log", f"The link {EUROPE} to {JAPAN} is delayed by 250 ms.")
        self.assertEqual(self.link(EUROPE, JAPAN)["delay_ms"], 250)
        self.assertEqual(self.link(JAPAN, EUROPE)["delay_ms"], 0)
        self.browser.press(BACKSPACE, BACKSPACE, BACKSPACE, "-", "1", ENTER)
        self.see("#log", "A delay is a whole number")
        self.tab_to("Heal everything", holding=SHIFT)
        self.browser.press(ENTER)
        self.see("#log", f"The link {EUROPE} to {JAPAN} has no delay.")
        self.assertEqual(self.link(EUROPE, JAPAN)["delay_ms"], 0)
        self.assert_quiet()

    def test_region_buttons(self):
        for verb, back, state, told in (("Kill", "Restart", "dead", f"{EUROPE} is down."),
                                        ("Pause", "Resume", "paused", f"{EUROPE} is frozen.")):
            self.tab_to(f"{verb} {EUROPE}")
            self.browser.press(ENTER)
            self.see("#log", told)
            self.assertEqual(self.region(EUROPE)["state"], state)
            self.see(f"{self.card(EUROPE)} .state", state)
            self.see("#figure-serving", "2 of 3")
            self.assertEqual(self.browser.focused(), f"{back} {EUROPE}")
            self.browser.press(ENTER)
            self.see(f"{self.card(EUROPE)} .state", "running")
            self.see("#figure-serving", "3 of 3")
            self.assertEqual(self.region(EUROPE)["state"], "running")
        self.tab_to(f"Isolate {EUROPE}")
        self.browser.press(ENTER)
        self.see("#log", f"{EUROPE} is isolated")
        self.see("#links .state", "isolated")
        self.assertTrue(self.region(EUROPE)["isolated"])
        self.browser.press(ENTER)
        self.see("#log", f"{EUROPE} has joined again.")
        self.assertFalse(self.region(EUROPE)["isolated"])
        self.assert_quiet()

    def test_an_overruled_write_is_told(self):
        self.browser.run("performance.now = () => 100 * Date.now()")  # it reads the ledgers every other second
        for a, b in ((USA, EUROPE), (EUROPE, USA)):
            self.ask("POST", f"/v1/links/{a}/{b}/cut")
        self.client(USA).put(self.shared, pk="<b>k</b>", owner="ada")
        self.client(EUROPE).put(self.shared, pk="<b>k</b>", owner="<script>grace")
        self._heal()
        self.see("#conflicts li", "kept")
        self.see("#conflicts li .kept", f'kept {EUROPE} owner: "<script>grace"')
        self.see("#conflicts li .lost", f'lost {USA} owner: "ada"')
        self.see("#conflicts li", 'pk: "<b>k</b>"')
        self.assert_quiet()

    def test_tab_order_follows_the_page(self):
        self.see("#last-run", "loss")
        order = self.tab_to(f"Cut {JAPAN} to {EUROPE}")
        self.assertRegex(order.pop(2), "^loss, report of ")
        wanted = ["Skip to the regions", "Heal everything", "What happened"]
        wanted += [f"{verb} {region}" for region in REGIONS for verb in ("Kill", "Pause", "Isolate")]
        for a in REGIONS:
            for b in REGIONS:
                if a != b:
                    link = f"{a} to {b}"
                    wanted += [f"Delay from {link}, in milliseconds", f"Set the delay from {link}", f"Cut {link}"]
        self.assertEqual(order, wanted)
        outline = self.browser.run("return getComputedStyle(document.activeElement).outlineStyle")
        self.assertNotEqual(outline, "none")

    def test_fits_and_can_be_read(self):
        self.cluster.make_strong(self.table)
        self.ask("POST", f"/v1/links/{USA}/{JAPAN}/cut")
        self.ask("POST", f"/v1/links/{EUROPE}/{JAPAN}/delay", body='{"delay_ms": 200}')
        self.addCleanup(self.ask, "POST", f"/v1/links/{EUROPE}/{JAPAN}/delay", body='{"delay_ms": 0}')
        self.region_to("kill", JAPAN, back="restart")
        self.see(f"{self.card(JAPAN)} .state", "dead")
        for width, height, dark in ((390, 844, False), (390, 844, True), (1280, 900, False), (1280, 900, True),
                                    (1600, 1000, False)):
            with self.subTest(width=width, dark=dark):
                self.browser.show(width, height, dark)
                self.assertLessEqual(self.browser.run("return document.documentElement.scrollWidth"), width)
                wide = self.browser.run(
                    "return [...document.querySelectorAll('main *:not(svg *)')].filter((node) => "
                    "node.getBoundingClientRect().right > arguments[0])"
                    ".map((node) => node.outerHTML.slice(0, 80))", width)
                self.assertEqual(wide, [])
                self.assertEqual(self.browser.run(CONTRASTS), [])
                if SHOTS:
                    self.browser.picture(os.path.join(SHOTS, f"console-{width}-{'dark' if dark else 'light'}.png"))

    def test_a_harness_that_is_silent_is_told_calmly(self):
        self.browser.run("window.kept = window.fetch; window.fetch = () => Promise.reject(new TypeError('refused'))")
        self.see("#pulse", "No answer")
        self.see("#trouble", "goes on asking")
        self.assertIn(USA, self.browser.text("#regions"))
        self.assertEqual(self.browser.role("#trouble"), "status")
        self.browser.run("window.fetch = window.kept")
        self.see("#pulse", "Live")
        self.assertFalse(self.browser.text("#trouble"))
        self.assert_quiet()

    def test_nothing_moves(self):
        places = lambda: self.browser.run(
            "return [...document.querySelectorAll('button, input, h1, h2, h3, dt, td, th')].map((node) => {"
            "const { x, y } = node.getBoundingClientRect(); return [node.tagName, x, y]; })")
        for width in (390, 1280):
            with self.subTest(width=width):
                self.browser.show(width)
                self.visit()
                self.see("#runs", "split")
                before = places()
                self.assertGreater(len(before), 40)
                self.ask("POST", f"/v1/links/{USA}/{EUROPE}/cut")
                self.region_to("isolate", JAPAN)
                self.region_to("pause", EUROPE)
                try:
                    for word in ("is cut", "is frozen", "is isolated"):
                        self.see("#log", word)
                    self.assertEqual([(a, b) for a, b in zip(before, places()) if a != b], [])
                finally:
                    self.region_to("resume", EUROPE)
                    self.region_to("rejoin", JAPAN)
                    self._heal()

    def test_finished_runs_are_listed(self):
        self.see("#runs", "split")
        self.assertRegex(self.browser.text("#runs"), r"(?s)wrong.*loss.*<b>3</b> writes are lost.*pass.*split")
        self.assertIn("loss", self.browser.text("#last-run"))
        self.assertEqual(self.browser.run("return document.querySelector('#runs a').getAttribute('href')"),
                         "/v1/runs/loss/20260102T000000Z")
        self.assert_quiet()
        self.browser.open(self.cluster.control + "/v1/runs/loss/20260102T000000Z")
        self.assertEqual(self.browser.text("body"), "the report of loss")
        self.assertEqual(self.browser.run("return self.origin"), "null")

    def ask(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.cluster.control_port, timeout=60)
        try:
            connection.request(method, path, body, {name.replace("_", "-"): v for name, v in headers.items()})
            answer = connection.getresponse()
            return answer, answer.read()
        finally:
            connection.close()

    def answer(self, path):
        return json.loads(self.ask("GET", path)[1])

    def region_to(self, verb, region, back=None):
        self.assertEqual(self.ask("POST", f"/v1/regions/{region}/{verb}")[0].status, 200)
        if back:
            self.addCleanup(self.region_to, back, region)

    def test_other_pages_may_not(self):
        agent = "Mozilla/5.0"
        cut = f"/v1/links/{USA}/{EUROPE}/cut"
        for path, site, status in (("/", "none", 200), ("/", "cross-site", 403), ("/v1/console", "same-origin", 200),
                                   ("/v1/console", "cross-site", 403), ("/proxies", "same-origin", 403)):
            answer, _ = self.ask("GET", path, User_Agent=agent, Sec_Fetch_Site=site)
            self.assertEqual(answer.status, status, (path, site))
        self.assertEqual(self.ask("GET", "/", Origin="http://evil.example")[0].status, 403)
        self.assertEqual(self.ask("POST", cut, User_Agent=agent)[0].status, 403)
        self.assertEqual(self.ask("POST", cut, User_Agent=agent, Sec_Fetch_Site="same-site")[0].status, 403)
        self.assertEqual(self.ask("POST", cut, User_Agent=agent, Origin="http://evil.example")[0].status, 403)
        self.assertEqual(self.ask("GET", "/", User_Agent=agent, Host="evil.example")[0].status, 403)
        self.assertEqual(self.link(USA, EUROPE)["state"], "up")
        self.assertEqual(self.ask("POST", cut, User_Agent=agent, Sec_Fetch_Site="same-origin")[0].status, 200)

    def test_a_link_elsewhere_may_lead_here(self):
        page = os.path.join(self.home.name, "elsewhere.html")
        with open(page, "w") as file:
            file.write(f'<a href="{self.cluster.control}/">look</a><script>fetch("{self.cluster.control}/", '
                       '{mode: "no-cors"}).then(() => 0, () => { document.title = "refused"; });</script>')
        self.browser.open(page)
        wait_until("the fetch is refused", lambda: self.browser.run("return document.title") == "refused")
        self.browser.run("document.querySelector('a').click()")
        wait_until("the page shows the cluster", lambda: self.browser.text("#main h3"))

    def test_files(self):
        answer, page = self.ask("GET", "/")
        self.assertEqual(answer.getheader("content-type"), "text/html; charset=utf-8")
        policy = answer.getheader("content-security-policy")
        self.assertIn("default-src 'none'", policy)
        self.assertIn("frame-ancestors 'none'", policy)
        self.assertNotIn("unsafe", policy)
        again, nothing = self.ask("GET", "/", If_None_Match=answer.getheader("etag"))
        self.assertEqual((again.status, nothing), (304, b""))
        self.assertEqual(self.ask("GET", "/?x=1")[1], page)
        self.assertEqual(self.ask("HEAD", "/")[1], b"")
        self.assertEqual(self.ask("POST", "/")[0].status, 404)
        self.assertEqual(self.ask("GET", "/console.mjs")[0].getheader("content-type"),
                         "text/javascript; charset=utf-8")
        self.assertEqual(self.ask("GET", "/v1/report")[1], b"the report of loss")
        told = self.answer("/v1/console")
        self.assertEqual(set(told), {"regions", "links", "replication", "groups", "tables", "faults"})
        self.assertEqual(told["faults"], [])
        for query in ("0", "1001", "x", "-1", "99999999999999999999", ""):
            self.assertEqual(self.ask("GET", f"/v1/conflicts?newest={query}")[0].status, 400, query)


if __name__ == "__main__":
    main()
