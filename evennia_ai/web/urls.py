"""Addresses under ``ai/``; a game adds ``path("ai/", include("evennia_ai.web.urls"))``."""

from django.urls import path

from evennia_ai.web.metrics import metrics
from evennia_ai.web.site import ADMIN, BUILDER, Page

CARDS, LORE, OPTIONS = ("upload", "make"), ("add", "on", "off"), ("preset", "set", "default")
STATE = ("start", "stop", "sleep", "wake", "undo", "compact")
LINE = ("remove", "restore", "correct")
MEMORY = ("approve", "reject", "forget", "correct", "quarantine", "release")
PAGES = (
    Page("assistants", "", BUILDER, "overview.assistants"),
    Page("spend", "spend/", ADMIN, "overview.spend"),
    Page("log", "log/", ADMIN, "overview.log"),
    Page("doctor", "doctor/", BUILDER, "overview.examination"),
    Page("cards", "cards/", BUILDER, "lore.cards", "lore.change_cards", CARDS),
    Page("picture", "cards/picture/", BUILDER, "lore.picture"),
    Page("lore", "lore/", BUILDER, "lore.books", "lore.change_books", LORE),
    Page("state", "<int:assistant>/", BUILDER, "one.state", "one.change", STATE),
    Page("talk", "<int:assistant>/talk/", ADMIN, "one.talk"),
    Page("scene", "<int:assistant>/scene/", ADMIN, "one.scene"),
    Page("search", "<int:assistant>/search/", ADMIN, "one.search", "one.change", MEMORY),
    Page("why", "<int:assistant>/why/<str:message>/", ADMIN, "one.why", "one.change", LINE),
    Page("summaries", "<int:assistant>/summaries/", ADMIN, "one.summaries"),
    Page("summary", "<int:assistant>/summaries/<str:summary>/", ADMIN, "one.below"),
    Page("memory", "<int:assistant>/memory/", ADMIN, "one.memory", "one.change", MEMORY),
    Page("budget", "<int:assistant>/budget/", BUILDER, "one.budget"),
    Page("options", "<int:assistant>/options/", BUILDER, "one.options", "one.set_option", OPTIONS),
)
app_name = "evennia_ai"
urlpatterns = [*(page.pattern() for page in PAGES), path("metrics", metrics, name="metrics")]
