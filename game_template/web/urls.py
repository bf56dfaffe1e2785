"""URLs of the game's website: the game's own first, then Evennia's."""

from django.urls import include, path
from evennia.web.urls import urlpatterns as evennia_default_urlpatterns

urlpatterns = [
    path("", include("web.website.urls")),
    path("webclient/", include("web.webclient.urls")),
    path("admin/", include("web.admin.urls")),
    path("ai/", include("evennia_ai.web.urls")),
]

urlpatterns = urlpatterns + evennia_default_urlpatterns
