"""Answers of the JVM come at once.

The rule: Py4J's side of the JVM writes an answer in pieces of 8 KB and lets the system hold each but the first till the
one before is acknowledged, which takes 40 ms: a plan of some columns or conditions is longer. Each thread's connection
is told not to wait (TCP_NODELAY), once. Where that cannot be said, answers come later.
"""

from __future__ import annotations

import logging
import threading
from typing import Any

_LOG = logging.getLogger("mica")


class _Told(threading.local):
    """The client of Py4J whose connection of this thread was told."""

    client: Any = None


_TOLD = _Told()


def answers_at_once(spark: Any) -> None:
    """Tells the JVM's end of this thread's connection."""
    gateway = spark.sparkContext._gateway  # noqa: SLF001
    client = gateway._gateway_client  # noqa: SLF001
    if _TOLD.client is client:
        return
    _TOLD.client = client  # once, also if it fails
    try:
        connections = _field(gateway.java_gateway_server, "connections")
        port = client.get_thread_connection().socket.getsockname()[1]  # which the first call opened
        for number in reversed(range(int(connections.size()))):
            socket = _field(connections.get(number), "socket")
            if int(socket.getPort()) == port:
                socket.setTcpNoDelay(True)
                return
    except Exception:  # noqa: BLE001 - another Py4J, whose answers may come later
        _LOG.debug("the JVM's answers are not hurried", exc_info=True)


def _field(on: Any, name: str) -> Any:
    """A private field of an object of the JVM, or of a class above its own."""
    found = on.getClass()
    while name not in {str(one.getName()) for one in found.getDeclaredFields()}:
        found = found.getSuperclass()
    field = found.getDeclaredField(name)
    field.setAccessible(True)
    return field.get(on)
