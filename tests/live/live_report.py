#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reports of made-up runs, as those see them who get them: a strict XML parser, and a real browser at the
widths of a phone and of a desk, in light and dark, with and without the script, and on paper."""

import base64
import hashlib
import html.parser
import os
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

from browser import MISSING, Browser
from cluster import main

BUILD = os.environ.get("TIDEMARK_BUILD", "build")
# Not the million operations of "huge": report_html_test holds them to their number of points.
KINDS = ("pass", "lost", "illegal", "slow", "dud", "unknown", "empty", "hostile", "many")
WIDE = """return [...document.querySelectorAll('body *')].filter(e => !e.closest('.wide,pre,svg,details')
    && e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 200))"""
# The contrast of every text with what is behind it, as WCAG reckons it; those below 4.5 to 1.
PALE = """
    const parse = c => c.match(/[0-9.]+/g).map(Number);
    const light = c => parse(c).slice(0, 3).map(v => v / 255)
        .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = e => { for (; e; e = e.parentElement) {
        const c = getComputedStyle(e).backgroundColor;
        if (parse(c)[3] !== 0) return c; } return 'rgb(255,255,255)'; };
    return [...document.querySelectorAll('h1,h2,h3,p,td,th,dt,dd,li,figcaption,caption,summary,a,strong')]
        .filter(e => e.textContent.trim() && e.id !== 'readout').map(e => {
            const a = light(getComputedStyle(e).color), b = light(behind(e));
            return [(Math.max(a, b) + .05) / (Math.min(a, b) + .05), e.outerHTML.slice(0, 120)]; })
        .filter(([ratio]) => ratio < 4.5).map(String);"""


class Outline(html.parser.HTMLParser):
    """What a screen reader goes by."""

    def __init__(self):
        super().__init__()
        self.headings, self.unnamed, self.bare = [], 0, 0
        self.scripts, self.script = [], None

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag in ("h1", "h2", "h3"):
            self.headings.append(int(tag[1]))
        if tag == "svg" and attrs.get("aria-hidden") != "true":
            nested = "viewbox" in attrs  # the curves within a drawing, which has the name
            self.unnamed += not nested and not (attrs.get("role") == "img" and "aria-labelledby" in attrs)
        if tag == "th":
            self.bare += "scope" not in attrs
        if tag == "script":
            self.script = ""

    def handle_data(self, data):
        if self.script is not None:
            self.script += data

    def handle_endtag(self, tag):
        if tag == "script":
            self.scripts.append(self.script)
            self.script = None


def setUpModule():
    Report.directory = tempfile.TemporaryDirectory(prefix="tidemark-reports-")
    unittest.addModuleCleanup(Report.directory.cleanup)
    subprocess.run([os.path.join(BUILD, "tests", "report_pages_main"), Report.directory.name, *KINDS], check=True,
                   stdout=subprocess.DEVNULL)


class Report(unittest.TestCase):
    directory = None

    def path(self, kind, name="report.html"):
        return os.path.join(self.directory.name, kind, name)

    def read(self, kind, name="report.html"):
        with open(self.path(kind, name), encoding="utf-8") as file:
            return file.read()


class Markup(Report):
    def test_well_formed(self):
        for kind in KINDS:
            with self.subTest(kind):
                xml.etree.ElementTree.fromstring(self.read(kind))
                xml.etree.ElementTree.fromstring(self.read(kind, "junit.xml").encode())

    def test_outline(self):
        for kind in KINDS:
            with self.subTest(kind):
                outline = Outline()
                outline.feed(self.read(kind))
                steps = zip(outline.headings, outline.headings[1:])
                self.assertEqual(outline.headings[0], 1)
                self.assertTrue(all(below - above <= 1 for above, below in steps), outline.headings)
                self.assertEqual((outline.unnamed, outline.bare), (0, 0))

    def test_only_its_own_script_may_run(self):
        outline = Outline()
        page = self.read("hostile")
        outline.feed(page)
        self.assertEqual(len(outline.scripts), 1)
        digest = base64.b64encode(hashlib.sha256(outline.scripts[0].encode()).digest()).decode()
        self.assertIn(f"script-src 'sha256-{digest}'", page)


@unittest.skipIf(MISSING, f"no browser to test with: {MISSING} is not installed")
class InBrowser(Report):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser().__enter__()
        cls.addClassCleanup(cls.browser.__exit__)

    def quiet(self, kind):
        self.assertEqual(self.browser.said, [])
        self.assertEqual(self.browser.fetched, ["file://" + self.path(kind)])

    def test_fits(self):
        for kind in KINDS:
            colours = kind in ("pass", "lost", "illegal")
            self.browser.open(self.path(kind))
            for width in (360, 1280):
                for dark in (False, True) if colours else (False,):
                    with self.subTest(kind, width=width, dark=dark):
                        self.browser.show(width, dark=dark)
                        self.assertEqual(self.browser.run("return document.documentElement.scrollWidth"), width)
                        self.assertEqual(self.browser.run(WIDE), [])
                        if colours:
                            self.assertEqual(self.browser.run(PALE), [])
            self.quiet(kind)

    def test_hostile_texts_do_nothing(self):
        self.browser.show(1280)
        self.browser.open(self.path("hostile"))
        self.quiet("hostile")
        self.assertEqual(self.browser.run("return document.images.length + document.scripts.length"), 1)

    def test_without_script(self):
        self.browser.show(1280)
        texts = []
        for script in (True, False):
            self.browser.open(self.path("lost"), script=script)
            # Only the document is asked, which a page without script answers as well.
            root = self.browser.call("DOM.getDocument")["root"]["nodeId"]
            texts.append(self.browser.call("DOM.getOuterHTML", nodeId=root)["outerHTML"])
        self.assertEqual(texts[0], texts[1])

    def test_pointer_reads_the_curves(self):
        self.browser.show(1280)
        self.browser.open(self.path("lost"))
        place = self.browser.run("""const p = document.querySelector('path[data-name=p99]')
            .closest('svg.plot'); p.scrollIntoView({block: 'center'});
            const r = p.getBoundingClientRect(); return [r.left + r.width * .2, r.top + 20];""")
        self.browser.point(*place)
        said = self.browser.run("return document.getElementById('readout').textContent")
        for part in ("+2.90 s", "us-east-1", "p50 ", "p99 ", " ms", "answered ", "/s", "lag "):
            self.assertIn(part, said)
        self.assertEqual(self.browser.said, [])

    def test_prints(self):
        self.browser.show(1280)
        self.browser.open(self.path("lost"))
        path = os.path.join(self.directory.name, "lost.pdf")
        self.browser.pdf(path)
        self.assertGreater(os.path.getsize(path), 10000)
        self.assertEqual(self.browser.said, [])


if __name__ == "__main__":
    main()
