"""What some bodies of requests can do besides. Apart from ``http``, because a compiled protocol cannot be asked for."""

from typing import Protocol, runtime_checkable


@runtime_checkable
class DirectReads(Protocol):
    """A long body whose connection receives into any buffer: not even one copy is made."""

    async def read_into(self, buffer: memoryview) -> int:
        """Receive the next bytes into the buffer; returns how many.

        They are fewer than fit, perhaps none, if the body has ended or the client is slow: the caller should not keep
        a buffer for it. Raises BodyError. Sends 100 Continue when needed.
        """
