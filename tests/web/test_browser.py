"""The pages in a real browser, as wide as a phone and as a desk: overflow, labels, links.

The pages are made by Django's test client, saved, and served with the package's static files on
loopback. One run of Chromium opens each of them in frames of both widths and reports what it sees.

    PICTURES=docs/images python -m pytest tests/web/test_browser.py

makes the pictures of the documents, too.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import evennia

import evennia_ai
from evennia_ai.game.hearing import event_of
from evennia_ai.history.audience import private
from evennia_ai.history.messages import Speaker
from evennia_ai.llm_interaction.values import ModelReply
from evennia_ai.rag_memory.entities import new_profile, observe
from evennia_ai.rag_memory.ledger import PROPOSED
from tests.web.test_pages import PagesTest

BROWSER = next(
    filter(None, map(shutil.which, (os.environ.get("CHROMIUM", ""), "chromium", "google-chrome"))),
    None,
)
WIDTHS = (390, 1280)
# Pictures for the documents, and the folder into which they are put, if one is named.
PICTURES = (("assistants", 1280), ("scene", 1280), ("why", 1280), ("budget", 1280), ("spend", 390))
PICTURES += (("summaries", 390), ("options", 390))
PICTURES_TO = os.environ.get("PICTURES", "")
LONG = "Heron" if PICTURES_TO else "Mississippisteamboatcaptain" * 4
HARNESS = """<!DOCTYPE html><body><pre id="found"></pre><script>
const pages = PAGES, widths = WIDTHS, found = [];
const named = (e) => (e.getAttribute("aria-label") || e.textContent || e.title || "").trim()
  || [...(e.labels ?? [])].map((l) => l.textContent).join(" ").trim();
const look = (page, width, doc) => {
  const box = doc.documentElement, faults = [];
  if (box.scrollWidth > box.clientWidth) faults.push(`wider than the screen: ${box.scrollWidth}`);
  for (const e of doc.querySelectorAll("body *")) {
    const rect = e.getBoundingClientRect();
    if (rect.width && rect.right > width + 1 && !e.closest(".scroll, figure, .hidden, .skip"))
      faults.push(`${e.tagName} ${e.className} sticks out: ${Math.round(rect.right)}`);
  }
  for (const e of doc.querySelectorAll(".scroll"))
    if (e.scrollWidth > e.clientWidth + 1)
      faults.push(`a table scrolls: ${e.ariaLabel}`);
  for (const e of doc.querySelectorAll("input:not([type=hidden]), select, textarea, button, a"))
    if (!named(e)) faults.push(`${e.tagName} without a name: ${e.outerHTML.slice(0, 80)}`);
  for (const e of doc.querySelectorAll("label, th, h1, h2, summary, button")) {
    const text = [...e.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data).join(" ");
    if (/[a-z]_[a-z]/.test(text)) faults.push(`a raw key for a label: ${text.trim()}`);
  }
  const links = [...doc.querySelectorAll("a")].map((a) => a.getAttribute("href"));
  const figures = [...doc.querySelectorAll("figure")];
  const charts = figures.map((f) => f.querySelectorAll("canvas").length);
  found.push({ page, width, faults: [...new Set(faults)].slice(0, 8), links, charts });
};
(async () => {
  for (const page of pages) for (const width of widths) {
    const frame = document.createElement("iframe");
    frame.style = `width:${width}px;height:900px;border:0`;
    frame.src = page;
    await new Promise((done) => { frame.onload = done; document.body.append(frame); });
    await new Promise((done) => setTimeout(done, 150));
    look(page, width, frame.contentDocument);
    frame.remove();
  }
  document.getElementById("found").textContent = JSON.stringify(found);
})();
</script></body>"""


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a line for each."""

    def log_message(self, *args):
        pass


@unittest.skipUnless(BROWSER, "no Chromium here: install it, or name it by CHROMIUM")
class BrowserTest(PagesTest):
    """Every page with a full evening on it."""

    def setUp(self):
        super().setUp()
        self.saved = Path(self.enterContext(tempfile.TemporaryDirectory()))
        package = Path(evennia_ai.__file__).parent
        for folder in (Path(evennia.__file__).parent / "web" / "static", package / "static"):
            shutil.copytree(folder, self.saved / "static", dirs_exist_ok=True)
        handler = partial(Quiet, directory=str(self.saved))
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.live()

    def live(self):
        """An evening: talk, a whisper, answers, a compaction, notes, profiles, money spent."""
        script, aria = self.script, self.script.obj
        self.configure(compact_preserve_window=4, compact_model="scripted/model")
        self.model.default = lambda request: ModelReply(
            content=f"By the river, {len(self.model.requests)} steps on.",
            model="scripted/model",
            prompt_tokens=900,
            completion_tokens=9,
            cost=0.002,
        )
        now = script.now() - 8 * 600
        script.now = lambda: now
        for number in range(8):
            now += 600
            self.talk(f"Aria, where is mill {number} of {LONG if number == 3 else 'ours'}?")
        whisper = event_of(aria, self.char1, "whisper", LONG, private(["o9.abc"]))
        script.history.append([whisper])
        aria.journal.add(f"Bob owes {LONG} nine crowns.")
        profile = new_profile("o9.abc", f"Bob {LONG}", script.now())
        aria.entities.put({profile.id: observe(profile, LONG, script.now(), "m1")})
        script.ledger.add(f"Bob likes {LONG}", Speaker("Bob", "o9.abc"), state=PROPOSED)
        self.model.default = "Bob asked for the mills by the river."
        self.typed("compact Aria", until="compacted")
        script.trouble(f"no model answers ({LONG})")

    def test_every_page_at_both_widths(self):
        """Nothing sticks out, everything has a name, no key stands for a label, links lead on."""
        message = next(m for m in self.script.history.messages() if m.role == "assistant").id
        summary = next(iter(self.script.history.summary_ids()))
        pages = {}
        for page, address in self.addresses(message):
            address = address.replace("/s1/", f"/{summary}/")
            response = self.client.get(address)
            self.assertEqual(response.status_code, 200, address)
            pages[page.name] = address
            text = response.content.decode().replace("hx-trigger", "data-trigger")
            self.saved.joinpath(f"{page.name}.html").write_text(text, "utf-8")
        found = self.looked_at([f"/{name}.html" for name in pages])
        self.assertEqual(len(found), len(pages) * len(WIDTHS))
        faults = [
            (each["page"], each["width"], fault) for each in found for fault in each["faults"]
        ]
        self.assertEqual(faults, [])
        for name in ("budget", "spend"):
            charts = [each["charts"] for each in found if each["page"] == f"/{name}.html"]
            self.assertEqual(charts, [[1], [1]], name)
        self.assertLinks(found, pages)
        for name, width in PICTURES if PICTURES_TO else ():
            picture = Path(PICTURES_TO).resolve() / f"pages-{name}-{width}.png"
            self.browser(f"/{name}.html", f"--screenshot={picture}", f"--window-size={width},900")

    def assertLinks(self, found, pages):  # noqa: N802 - unittest's own form
        """Each link of a page leads to a page, or to a place on it."""
        links = {(each["page"][1:-5], link) for each in found for link in each["links"]}
        for name, link in sorted(links):
            base = pages[name]
            address, _, place = link.partition("#")
            address = f"{base}{address}" if address[:1] in ("", "?") else address
            response = self.client.get(address, follow=True)
            self.assertEqual(response.status_code, 200, f"{name}: {link}")
            if place:
                self.assertIn(f'id="{place}"', response.content.decode(), f"{name}: {link}")

    def looked_at(self, pages):
        """What the browser saw of saved pages."""
        harness = HARNESS.replace("PAGES", json.dumps(pages)).replace("WIDTHS", json.dumps(WIDTHS))
        self.saved.joinpath("harness.html").write_text(harness, "utf-8")
        shown = self.browser("/harness.html", "--dump-dom", "--window-size=1400,1000")
        report = re.search(r'<pre id="found">(.*?)</pre>', shown.stdout, re.S)
        self.assertTrue(report and report[1], shown.stderr[-2000:])
        return json.loads(unescape(report[1]))

    def browser(self, page, *options):
        """Open a saved page in the browser; its process, ended."""
        command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += ["--virtual-time-budget=60000", f"--user-data-dir={self.saved / 'profile'}"]
        command += [*options, f"http://127.0.0.1:{self.server.server_port}{page}"]
        return subprocess.run(command, capture_output=True, text=True, timeout=240)
