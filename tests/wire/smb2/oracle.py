"""smbprotocol as the oracle: it writes the requests that are decoded here, and reads the responses."""

from typing import Any

from smbprotocol.structure import Structure

HEADER = bytes(64)


def build(structure: type[Structure], **values: Any) -> Any:
    """A structure with these fields."""
    built = structure()
    for name, value in values.items():
        built[name] = value
    return built


def request(structure: type[Structure], **values: Any) -> memoryview:
    """A message of this body, behind an empty header."""
    return memoryview(HEADER + build(structure, **values).pack())


def read(structure: type[Structure], data: bytes, *, is_whole: bool = True) -> dict[str, Any]:
    """The fields of a structure. ``is_whole`` says that nothing may be left over."""
    found = structure()
    rest = found.unpack(data)
    assert not (is_whole and rest)
    return {name: field.get_value() for name, field in found.fields.items()}
