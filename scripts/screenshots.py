"""Take the pictures in `docs/images`: play a new game, and look at its pages with a browser.

Usage: python -m scripts.screenshots

Needs Playwright, and a Chromium: the one that `CHROMIUM` names, else this system's, else
Playwright's own (`playwright install chromium`). It takes four minutes and asks no model.
"""

import os
import shutil
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.e2e.game import PASSWORD, REPOSITORY, Game

IMAGES = REPOSITORY / "docs" / "images"
WIDE, PHONE = 1280, 390
MOST_HEIGHT = 1000
# The widths of each page's pictures, in pixels.
PAGES = {
    "assistants": (WIDE,),
    "scene": (WIDE,),
    "why": (WIDE, PHONE),
    "budget": (WIDE,),
    "summaries": (PHONE,),
}
PAUSE_S = 8  # between lines: the chart of prompts has a width
REPLY = "Mira told me"  # begins the reply whose reasons are shown
PREPARED = (
    "aiconfig Aria compact_preserve_window = 4",
    "ailore/add town = ferry, Oxmoor: The ferry to Oxmoor leaves at dawn and costs two coppers.",
)
# Who types what, and what shows the answer. Between two talks the history is compacted.
TALKS = (
    (
        ("Mira", "say Aria, good evening!", "Aria says"),
        ("Mira", "say Aria, please remember that I moor at the east quay.", "Aria says"),
        ("Bram", "say Aria, give me an ale, please", "gives you a mug of ale"),
        ("Bram", "say Aria, I am a carpenter, and I look for work.", "Aria says"),
        ("Mira", "say Aria, the candle works want a steady hand for the winter.", "Aria says"),
        ("Bram", "say Aria, who wants a steady hand?", "Aria says"),
    ),
    (
        ("Mira", "whisper Aria = I hid the key under the third barrel.", "Aria whispers"),
        ("Mira", "say Aria, the goose Bishop is lost again.", "Aria says"),
        ("Bram", "say Aria, I saw a goose at the mill.", "Aria says"),
        ("Mira", "say Aria, who saw a goose?", "Aria says"),
        ("Bram", "say Aria, when does the ferry leave?", "Aria says"),
        ("Bram", "say Aria, thank you.", "Aria says"),
    ),
    (
        ("Mira", "say Aria, please remember that my boat is called Heron.", "Aria says"),
        ("Bram", "say Aria, what is Mira's boat called?", REPLY),
        ("Mira", "whisper Aria = where is the key?", "Aria whispers"),
        ("Bram", "say Aria, where is the key?", "Aria says"),
    ),
)


def play(game: Game) -> None:
    """Talk with Aria as two players and as the owner, with a compaction between."""
    with game.admin() as admin, game.player("Mira") as mira, game.player("Bram") as bram:
        players = {"Mira": mira, "Bram": bram}
        for line in PREPARED:
            admin.ask(line, "compact_preserve_window|Added")
        for talk in TALKS:
            if talk is not TALKS[0]:
                admin.ask("compact Aria", r"Aria compacted [1-9]", 60)
            for name, line, answer in talk:
                players[name].ask(line, answer, 30)
                time.sleep(PAUSE_S)
        take_pictures(game)


def take_pictures(game: Game) -> None:
    """Log in to the web site and take each picture."""
    site = f"http://127.0.0.1:{game.ports.webserver}"
    program = (
        os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        page = browser.new_page()
        page.goto(f"{site}/auth/login/")
        page.fill("input[name=username]", "admin")
        page.fill("input[name=password]", PASSWORD)
        page.press("input[name=password]", "Enter")
        page.goto(f"{site}/ai/")
        aria = page.get_by_role("link", name="Aria", exact=True).get_attribute("href")
        page.goto(f"{site}{aria}scene/")
        why = page.locator("li.line", has_text=REPLY).get_by_role("link", name="why")
        places = {"assistants": "/ai/", "why": why.first.get_attribute("href")}
        for name, widths in PAGES.items():
            page.goto(site + places.get(name, f"{aria}{name}/"))
            for width in widths:
                take_picture(page, IMAGES / f"pages-{name}-{width}.png", width)
        browser.close()


def take_picture(page: Page, path: Path, width: int) -> None:
    """Store how a page looks at a width, down to its end or `MOST_HEIGHT` pixels."""
    page.set_viewport_size({"width": width, "height": 400})
    page.wait_for_load_state("networkidle")
    height = page.evaluate("document.documentElement.scrollHeight")
    page.set_viewport_size({"width": width, "height": min(height, MOST_HEIGHT)})
    page.wait_for_timeout(500)  # charts are drawn anew
    page.screenshot(path=path)
    print(f"{path.name}: {width} x {min(height, MOST_HEIGHT)}")


if __name__ == "__main__":
    with Game(settings='SERVERNAME = "The Gilded Lantern"') as new_game:
        play(new_game)
