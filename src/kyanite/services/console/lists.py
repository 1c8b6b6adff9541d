"""Reading the lists and properties that services answer with."""

from urllib.parse import unquote
from xml.etree import ElementTree as ET

PAGE = 100
"""How many items a page has."""


def text(element: ET.Element, path: str) -> str:
    return element.findtext(path) or ""


def name_of(element: ET.Element) -> str:
    """A name with characters that XML has not is percent-encoded, and says so."""
    found = element.find("Name")
    if found is None:
        return ""
    given = found.text or ""
    return unquote(given) if found.get("Encoded") == "true" else given


def properties(element: ET.Element) -> dict[str, str]:
    found = element.find("Properties")
    return {} if found is None else {each.tag: each.text or "" for each in found}


def metadata(element: ET.Element) -> dict[str, str]:
    found = element.find("Metadata")
    return {} if found is None else {each.tag: each.text or "" for each in found}


def pairs_text(pairs: dict[str, str]) -> str:
    """As a form shows them: a line for each."""
    return "\n".join(f"{name} = {value}" for name, value in pairs.items())


def pairs_in(given: str) -> dict[str, str]:
    """Back from the lines of a form."""
    lines = (line.partition("=") for line in given.splitlines() if line.strip())
    return {name.strip(): value.strip() for name, _, value in lines}
