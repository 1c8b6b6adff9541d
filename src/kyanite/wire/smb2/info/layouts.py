"""The layouts of a kind of information, by information class."""

from collections.abc import Callable, Mapping
from typing import Generic, NamedTuple, TypeVar

from kyanite.wire.malformed import Malformed

I_contra = TypeVar("I_contra", contravariant=True)


class Layout(NamedTuple, Generic[I_contra]):
    fixed_bytes: int
    """What the client's buffer must hold at least."""
    encode: Callable[[I_contra], bytes]


class Layouts(Generic[I_contra]):
    """A class that cannot be queried is INVALID_INFO_CLASS."""

    __slots__ = ("_layouts",)

    def __init__(self, layouts: Mapping[int, Layout[I_contra]]) -> None:
        self._layouts = layouts

    def fixed_bytes_of(self, information_class: int) -> int:
        return self._of(information_class).fixed_bytes

    def encode(self, information_class: int, info: I_contra) -> bytes:
        return self._of(information_class).encode(info)

    def _of(self, information_class: int) -> Layout[I_contra]:
        try:
            return self._layouts[information_class]
        except KeyError:
            raise Malformed("INVALID_INFO_CLASS") from None
