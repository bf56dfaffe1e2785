"""Settings of the game. They override Evennia's defaults.

`evennia/settings_default.py` lists all of Evennia's settings. Put secrets in `secret_settings.py`
or in the environment. To choose the assistant's model, set `EVENNIA_AI_LLM_MODEL`,
`EVENNIA_AI_LLM_API_BASE` and `EVENNIA_AI_LLM_API_KEY` in either place. Without them the assistant
uses the offline model.
"""

import os

from evennia.settings_default import *  # noqa: F403

from evennia_ai.cli.ports import game_ports

SERVERNAME = "The Gilded Lantern"

INSTALLED_APPS += ["evennia_ai"]  # noqa: F405

# The ports come from TELNET_PORT, WEBSERVER_PORT and WEBSOCKET_PORT in the environment, or are
# Evennia's defaults. They are stored in server/ports.json, with two internal ports to match.
_ports = game_ports(GAME_DIR)  # noqa: F405
TELNET_PORTS = [_ports.telnet]
WEBSERVER_PORTS = [(_ports.webserver, _ports.internal)]
WEBSOCKET_CLIENT_PORT = _ports.websocket
AMP_PORT = _ports.amp
SSH_ENABLED = False
SSL_ENABLED = False

# Only this machine can connect. To open the game to others, set GAME_INTERFACE=0.0.0.0 in the
# environment, or set the three interfaces here.
_interface = os.environ.get("GAME_INTERFACE", "127.0.0.1")
TELNET_INTERFACES = [_interface]
WEBSERVER_INTERFACES = [_interface]
WEBSOCKET_CLIENT_INTERFACE = _interface

try:
    from server.conf.secret_settings import *  # noqa: F403
except ImportError:
    print("server/conf/secret_settings.py is missing: it must hold SECRET_KEY.")
