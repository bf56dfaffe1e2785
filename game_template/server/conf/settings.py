"""Settings of the game: Evennia's defaults, and what differs from them.

All of Evennia's settings are in `evennia/settings_default.py`. Secrets belong in
`secret_settings.py`, or into the environment. The assistant's model is set by
`EVENNIA_AI_LLM_MODEL`, `EVENNIA_AI_LLM_API_BASE` and `EVENNIA_AI_LLM_API_KEY` in either place;
with none set the offline model speaks.
"""

import os

from evennia.settings_default import *  # noqa: F403

from evennia_ai.cli.ports import game_ports

SERVERNAME = "The Gilded Lantern"

INSTALLED_APPS += ["evennia_ai"]  # noqa: F405

# Ports: TELNET_PORT, WEBSERVER_PORT and WEBSOCKET_PORT of the environment, or Evennia's own.
# The choice is kept in server/ports.json, and the two inner ports follow it.
_ports = game_ports(GAME_DIR)  # noqa: F405
TELNET_PORTS = [_ports.telnet]
WEBSERVER_PORTS = [(_ports.webserver, _ports.internal)]
WEBSOCKET_CLIENT_PORT = _ports.websocket
AMP_PORT = _ports.amp
SSH_ENABLED = False
SSL_ENABLED = False

# Only this machine can connect until you open the game: GAME_INTERFACE=0.0.0.0 in the
# environment, or set the three here.
_interface = os.environ.get("GAME_INTERFACE", "127.0.0.1")
TELNET_INTERFACES = [_interface]
WEBSERVER_INTERFACES = [_interface]
WEBSOCKET_CLIENT_INTERFACE = _interface

try:
    from server.conf.secret_settings import *  # noqa: F403
except ImportError:
    print("server/conf/secret_settings.py is missing: it must hold SECRET_KEY.")
