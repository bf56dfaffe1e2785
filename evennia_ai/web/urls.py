"""Addresses under ``ai/``; a game adds ``path("ai/", include("evennia_ai.web.urls"))``."""

from django.urls import path

from evennia_ai.web.metrics import metrics
from evennia_ai.web.site import ADMIN, BUILDER, Page

PAGES = (
    Page("assistants", "", BUILDER, "overview.assistants"),
    Page("spend", "spend/", ADMIN, "overview.spend"),
    Page("log", "log/", ADMIN, "overview.log"),
    Page("doctor", "doctor/", BUILDER, "overview.examination"),
    Page("cards", "cards/", BUILDER, "lore.cards", "lore.change_cards"),
    Page("picture", "cards/picture/", BUILDER, "lore.picture"),
    Page("lore", "lore/", BUILDER, "lore.books", "lore.change_books"),
    Page("state", "<int:assistant>/", BUILDER, "one.state", "one.change_state"),
    Page("talk", "<int:assistant>/talk/", ADMIN, "one.talk"),
    Page("scene", "<int:assistant>/scene/", ADMIN, "one.scene"),
    Page("search", "<int:assistant>/search/", ADMIN, "one.search", "one.change_memory"),
    Page("why", "<int:assistant>/why/<str:message>/", ADMIN, "one.why", "one.change_line"),
    Page("summaries", "<int:assistant>/summaries/", ADMIN, "one.summaries"),
    Page("summary", "<int:assistant>/summaries/<str:summary>/", ADMIN, "one.below"),
    Page("memory", "<int:assistant>/memory/", ADMIN, "one.memory", "one.change_memory"),
    Page("budget", "<int:assistant>/budget/", BUILDER, "one.budget"),
    Page("options", "<int:assistant>/options/", BUILDER, "one.options", "one.change_options"),
)
app_name = "evennia_ai"
urlpatterns = [*(page.pattern() for page in PAGES), path("metrics", metrics, name="metrics")]
