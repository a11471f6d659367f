# SPDX-License-Identifier: Apache-2.0
"""Who may talk to the server: no web page, and no candidate."""
import socket
import struct

_LOCAL = ("127.0.0.1", "localhost")


def page_says(headers):
    """Why a request of a browser's page is refused, "" for others: pages may send to this machine, and name it as they like."""
    if "Origin" in headers:
        return "the request has an Origin: it comes from a web page"
    host = headers.get("Host", "localhost").rsplit(":", 1)[0]
    return "" if host in _LOCAL else "Host: not 127.0.0.1 or localhost"


def _namespaces(pid):
    """How many namespaces of processes `pid` is in, as this process sees it; None where it is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="latin-1") as file:
            return next((len(line.split()) for line in file if line.startswith("NSpid:")), None)
    except OSError:
        return None


def is_candidate(connection):
    """Whether the other end of a Unix socket is in a namespace below this one, as candidates are. The network's namespaces
    do not hold back a Unix socket, which is a file."""
    pid, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
    return pid != 0 and _namespaces(pid) != _namespaces("self")  # 0: a process of a namespace above
