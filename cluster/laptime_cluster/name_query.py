"""Ask a name server for the address of the API's Service; also run by itself inside the node.

Usage: name_query.py SERVER NAME — prints the address, exits with 1 when there is no answer.
"""

import socket
import struct
import sys

_TRIES = 3


def resolve(server: str, name: str, timeout_seconds: float = 1.0) -> str | None:
    """The address of `name` as told by `server`, in whose family it is asked for.

    It is asked three times, as resolvers do: a datagram may be lost, and a busy machine slow. None
    when it does not answer with one.
    """
    for _ in range(_TRIES):
        if (found := _ask(server, name, timeout_seconds)) is not None:
            return found
    return None


def _ask(server: str, name: str, timeout_seconds: float) -> str | None:
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    kind, length = (28, 16) if family == socket.AF_INET6 else (1, 4)  # AAAA or A
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.rstrip(".").split("."))
    query = (
        struct.pack(">6H", 0x4C54, 0x0100, 1, 0, 0, 0)
        + labels
        + b"\0"
        + struct.pack(">2H", kind, 1)
    )
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as udp:
            udp.settimeout(timeout_seconds)
            udp.connect((server, 53))
            udp.send(query)
            answer = udp.recv(1500)
    except OSError:
        return None
    # With a single record, which is all such a Service has, the address ends the answer section.
    header = struct.unpack(">6H", answer[:12])
    if header[0] != 0x4C54 or header[3] != 1:
        return None
    record = answer[len(query) :]
    if len(record) < 12 + length:
        return None
    return socket.inet_ntop(family, record[-length:])


if __name__ == "__main__":
    found = resolve(sys.argv[1], sys.argv[2])
    print(found or "no answer")
    sys.exit(0 if found else 1)
