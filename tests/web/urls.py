"""Addresses of a game, for tests of its pages."""

from django.urls import include, path
from evennia.web.urls import urlpatterns as games

urlpatterns = [path("ai/", include("evennia_ai.web.urls")), *games]
