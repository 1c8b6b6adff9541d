from kyanite.engine.memory.engine import MemoryEngine
from kyanite.model import settings
from kyanite.model.records import encode
from kyanite.model.settings import decode_settings
from kyanite.service_properties import (
    INITIAL,
    CorsRule,
    Logging,
    ProtocolSettings,
    Retention,
    ServiceProperties,
)
from tests.model.content.world import outcome
from tests.service_properties import EVERYTHING


def test_a_service_begins_with_everything_off() -> None:
    assert outcome(settings.get(MemoryEngine(), "acme", "blob")) == INITIAL


def test_every_property_is_stored() -> None:
    engine = MemoryEngine()
    outcome(settings.update(engine, "acme", "blob", EVERYTHING))
    assert outcome(settings.get(engine, "acme", "blob")) == EVERYTHING


def test_stored_properties_have_their_types() -> None:
    found = decode_settings(encode(EVERYTHING))
    assert found.cors is not None
    assert isinstance(found.cors[0], CorsRule)
    assert isinstance(found.logging, Logging)
    assert isinstance(found.logging.retention, Retention)


def test_a_record_of_an_earlier_version_may_be_shorter() -> None:
    assert decode_settings(encode([None, None, None, []])) == ServiceProperties(cors=())


def test_accounts_and_services_have_their_own() -> None:
    engine = MemoryEngine()
    outcome(settings.update(engine, "acme", "blob", EVERYTHING))
    assert outcome(settings.get(engine, "acme", "queue")) == INITIAL
    assert outcome(settings.get(engine, "acm", "eblob")) == INITIAL
    assert outcome(settings.get(engine, "other", "blob")) == INITIAL


def test_an_update_keeps_what_it_leaves_out() -> None:
    engine = MemoryEngine()
    outcome(settings.update(engine, "acme", "blob", EVERYTHING))
    outcome(settings.update(engine, "acme", "blob", ServiceProperties(cors=(), share_retention=Retention())))
    expected = EVERYTHING._replace(cors=(), share_retention=Retention())
    assert outcome(settings.get(engine, "acme", "blob")) == expected


def test_an_update_keeps_the_protocol_settings_that_it_leaves_out() -> None:
    engine = MemoryEngine()
    for change in (ProtocolSettings(smb_multichannel=True), ProtocolSettings(nfs_encryption=False)):
        outcome(settings.update(engine, "acme", "file", ServiceProperties(protocols=change)))
    assert outcome(settings.get(engine, "acme", "file")).protocols == ProtocolSettings(True, None, False)
