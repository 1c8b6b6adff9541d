"""Which accounts are served, from what is stated and what is stored."""

import pytest

from kyanite.model.account_rows import AccountRecord
from kyanite.model.accounts import AccountSettings
from kyanite.server.accounts.served import ServedAccount, check_well_known_key, served_accounts
from kyanite.server.accounts.settings import SettingsChange
from kyanite.server.config import DEVELOPMENT_KEY, StatedAccount
from kyanite.server.failures import Failure

LRS = AccountSettings(sku="Standard_LRS")
ALPHA = StatedAccount("alpha", (b"a",), stated_by={"keys": "--account"})
STORED = AccountRecord((b"sealed",), LRS)
REMOVED = AccountRecord(is_removed=True)
NO_KEYS = AccountRecord((), LRS)
DEVELOPMENT = "devstoreaccount1"


def opened(name: str, sealed: bytes) -> bytes:
    return b"%b of %b" % (sealed, name.encode())


def served(*stated: StatedAccount, **stored: AccountRecord) -> dict[str, ServedAccount]:
    return served_accounts(stated, stored, opened)


def test_without_any_the_development_account() -> None:
    assert served() == {DEVELOPMENT: ServedAccount((DEVELOPMENT_KEY,), AccountSettings(), {})}
    # Its settings may be stored.
    assert served(devstoreaccount1=NO_KEYS)[DEVELOPMENT].settings == LRS


def test_any_other_account_replaces_it() -> None:
    assert list(served(ALPHA)) == ["alpha"]
    assert list(served(beta2=STORED)) == ["beta2"]
    assert list(served(beta2=STORED, devstoreaccount1=STORED)) == ["beta2", DEVELOPMENT]


def test_stored_keys_are_opened() -> None:
    assert served(beta2=STORED)["beta2"] == ServedAccount((b"sealed of beta2",), LRS, {})


def test_what_is_stated_counts_before_what_is_stored() -> None:
    assert served(ALPHA, alpha=STORED)["alpha"] == ServedAccount((b"a",), LRS, {"keys": "--account"})
    by = {"sku": "the file x"}
    stated = StatedAccount("alpha", (), SettingsChange(sku="Standard_GRS"), by)
    found = served(stated, alpha=AccountRecord((b"sealed",), AccountSettings(require_https=True)))
    settings = AccountSettings(sku="Standard_GRS", require_https=True)
    assert found["alpha"] == ServedAccount((b"sealed of alpha",), settings, by)


def test_stated_keys_need_no_key_file() -> None:
    def refuse(_name: str, _sealed: bytes) -> bytes:
        raise Failure("lost")

    assert served_accounts([ALPHA], {"alpha": STORED}, refuse)["alpha"].keys == (b"a",)
    with pytest.raises(Failure, match="lost"):
        served_accounts([ALPHA], {"beta2": STORED}, refuse)


@pytest.mark.parametrize("stored", [{}, {"alpha": NO_KEYS}])
def test_an_account_without_a_key(stored: dict[str, AccountRecord]) -> None:
    with pytest.raises(Failure, match="Account alpha has no key"):
        served_accounts([StatedAccount("alpha")], stored, opened)


def test_settings_of_an_account_that_is_not_stated_any_more() -> None:
    assert list(served(beta2=NO_KEYS)) == [DEVELOPMENT]


def test_a_removed_account_is_not_served() -> None:
    assert served(beta2=REMOVED, alpha=STORED).keys() == {"alpha"}
    assert served(devstoreaccount1=REMOVED) == {}
    # Not even if it is stated, until nothing of it is left.
    assert served(ALPHA, alpha=REMOVED) == {}


def test_those_that_are_stated_come_first() -> None:
    names = list(served(StatedAccount("zeta2", (b"z",)), ALPHA, beta2=STORED, aaa=STORED))
    assert names == ["zeta2", "alpha", "aaa", "beta2"]


def test_the_well_known_key_is_not_served_to_other_machines() -> None:
    with pytest.raises(Failure, match="which would open it to everyone"):
        check_well_known_key(served(), "0.0.0.0")
    check_well_known_key(served(ALPHA), "0.0.0.0")
