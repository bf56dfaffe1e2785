"""Making a stranger's text safe to send: it is shown letter by letter, never acted upon."""

import re

from django.conf import settings
from evennia.utils.ansi import raw

# Links (|lc and |lu with |lt and |le) are looked for after doubled pipes became single ones, so
# doubling does not protect them: the pipe in front of such a tag is replaced by a broken one.
_LINK_TAG = re.compile(r"\|(?=l[cute])")


def literal(text: str) -> str:
    """A text in which telnet and web clients find neither colours nor links.

    It is shown as it was, except the pipe of link tags, which is shown as ``¦``.
    """
    if settings.FUNCPARSER_PARSE_OUTGOING_MESSAGES_ENABLED:
        text = text.replace("$", "\\$")
    return str(raw(_LINK_TAG.sub("¦", text)))
