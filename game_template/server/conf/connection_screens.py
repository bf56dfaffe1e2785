"""What players see before they log in."""

from django.conf import settings
from evennia import utils

from evennia_ai.conf import listening_notice


def connection_screen():
    """Return the text; the last line says that assistants listen."""
    lines = [
        "|y" + "=" * 62 + "|n",
        f" Welcome to |g{settings.SERVERNAME}|n, version {utils.get_evennia_version('short')}!",
        "",
        " If you have an account, connect by typing:",
        "      |wconnect <username> <password>|n",
        " If you need an account, type (without the <>'s):",
        "      |wcreate <username> <password>|n",
        "",
        " Put a username with spaces into quotes. |whelp|n says more,",
        " |wlook|n shows this screen again.",
        "|y" + "=" * 62 + "|n",
        listening_notice(),
    ]
    return "\n".join(lines).rstrip()
