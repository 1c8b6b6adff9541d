"""The message ids that a client may use (MS-SMB2 §3.3.1.1, §3.3.1.2, §3.3.5.2.3).

A credit is the right to use one message id. The ids that were granted and not all used yet are a window: it begins
with the first unused id, and a mask says which of those behind it are used already.
"""

CREDITS_MAX = 8192
"""The widest window. Clients that ask for it get it after the first session is set up."""


class CreditWindow:
    __slots__ = ("_low", "_range", "_used")

    def __init__(self) -> None:
        self._low = 0
        self._range = 1
        """How many ids from ``_low`` on were granted."""
        self._used = 0
        """A bit for each id from ``_low`` on; the lowest is never set."""

    def use(self, message_id: int, charge: int) -> bool:
        """Use up as many ids as the charge says, from this one on; False if any of them was used or not granted."""
        at = message_id - self._low
        if at < 0 or at + charge > self._range:
            return False
        if not at and not self._used:
            self._slide(charge)
            return True
        mask = ((1 << charge) - 1) << at
        if self._used & mask:
            return False
        self._used |= mask
        if not at:
            trailing_ones = (~self._used & (self._used + 1)).bit_length() - 1
            self._used >>= trailing_ones
            self._slide(trailing_ones)
        return True

    def _slide(self, count: int) -> None:
        self._low += count
        self._range -= count

    def grant(self, charge: int, requested: int, *, grants_more: bool = True) -> int:
        """How many credits the response gives back: the charge, and more if requested and allowed.

        An id that the client skipped stops the window, and with it the grants, but not to the point where the client
        has no credit left.
        """
        wanted = charge + max(requested - 1, 0) if grants_more else charge
        granted = min(wanted, CREDITS_MAX - self._range)
        if granted <= 0 and self._is_used_up():
            granted = 1
        granted = max(granted, 0)
        self._range += granted
        return granted

    def _is_used_up(self) -> bool:
        return self._used.bit_count() >= self._range
