"""Addresses under ``ai/``; a game adds ``path("ai/", include("evennia_ai.web.urls"))``."""

from django.urls import path

from evennia_ai.web.views import status

app_name = "evennia_ai"
urlpatterns = [path("status/", status, name="status")]
