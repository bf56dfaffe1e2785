"""Free TCP ports, for games that tests start."""

import random
import socket

# Below the ports that systems give to outgoing connections (Linux: from 32768): one of those
# may take a port between the moment it is found free and the start of the game, and a game
# takes two more ports behind its telnet port.
_PORTS = range(20000, 32000)


def free_ports(count):
    """Ports of loopback that nobody listens on, all different and apart by ten or more."""
    ports = []
    for port in random.SystemRandom().sample(_PORTS[::10], len(_PORTS[::10])):
        with socket.socket() as one:
            if one.connect_ex(("127.0.0.1", port)):
                ports.append(port)
        if len(ports) == count:
            break
    return ports
