"""Pop receipts: there and back, and what is none."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kyanite.values import Instant
from kyanite.wire import pop_receipt
from kyanite.wire.malformed import Malformed

INSTANTS = st.integers(0, 2**63 - 1).map(Instant)
SECRETS = st.binary(min_size=pop_receipt.SECRET_BYTES, max_size=pop_receipt.SECRET_BYTES)


@given(visible_at=INSTANTS, put_at=INSTANTS, secret=SECRETS)
def test_a_receipt_survives_the_way_to_a_client_and_back(
    visible_at: Instant, put_at: Instant, secret: bytes
) -> None:
    text = pop_receipt.encode(visible_at, put_at, secret)
    assert re.fullmatch(r"[A-Za-z0-9_-]{32}", text)
    assert pop_receipt.decode(text) == (visible_at, put_at, secret)


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "A" * 31,
        "A" * 33,
        "A" * 31 + "?",
        "A" * 31 + "ü",
        "A" * 31 + "\n",
        # As the service was seen to refuse it: a plus sign that was not encoded.
        "AgAAAAMAAAAAAAAAYUMWAIg 1gE=",
    ],
)
def test_what_is_no_receipt(text: str) -> None:
    with pytest.raises(Malformed) as malformed:
        pop_receipt.decode(text)
    assert malformed.value.code == "InvalidQueryParameterValue"
    assert malformed.value.detail["QueryParameterName"] == "popreceipt"
    assert malformed.value.detail["Reason"] == "Invalid pop receipt format"


@pytest.mark.parametrize(
    "text", ["AgAAAAMAAAAAAAAAYUMWAIg+1gE=", "mesbvexorrjhouuwibaj", "A" * 31 + "=", "A" * 30 + "==", "_-+/"]
)
def test_a_receipt_of_another_form_leads_nowhere(text: str) -> None:
    assert pop_receipt.decode(text) == pop_receipt.NOWHERE
