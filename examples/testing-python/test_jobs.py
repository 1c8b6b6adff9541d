"""What takes minutes or bad luck elsewhere: expiry, refusals, lost answers. No test sleeps."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobSasPermissions, generate_blob_sas
from jobs import LEASE_SECONDS, VISIBILITY_SECONDS, Jobs

from kyanite.testing import Account, Clock, Faults, Requests


@pytest.fixture
def jobs(kyanite_connection_string: str) -> Iterator[Jobs]:
    made = Jobs(kyanite_connection_string)
    made.set_up()
    yield made
    made.close()


def test_another_worker_leads_when_the_lease_has_expired(jobs: Jobs, kyanite_clock: Clock) -> None:
    assert jobs.lead() is not None
    assert jobs.lead() is None
    kyanite_clock.advance(LEASE_SECONDS)
    assert jobs.lead() is not None


def test_an_unfinished_job_reappears(jobs: Jobs, kyanite_clock: Clock) -> None:
    jobs.queue.send_message("paint the shed")
    assert jobs.next_job() == "paint the shed"
    assert jobs.next_job() is None
    kyanite_clock.advance(VISIBILITY_SECONDS)
    assert jobs.next_job() == "paint the shed"


def test_a_busy_server_is_tried_again(jobs: Jobs, kyanite_faults: Faults, kyanite_requests: Requests) -> None:
    kyanite_faults.add(operation="Put Blob", times=2, status=503)
    assert jobs.write_result("shed", b"painted")
    assert [each.status for each in kyanite_requests.all(path="results/shed")] == [503, 503, 201]


def test_a_server_that_stays_busy_is_an_error(jobs: Jobs, kyanite_faults: Faults) -> None:
    kyanite_faults.add(operation="Put Blob", status=503)
    with pytest.raises(HttpResponseError, match="busy"):
        jobs.write_result("shed", b"painted")


def test_a_lost_answer_is_no_conflict(jobs: Jobs, kyanite_faults: Faults, kyanite_requests: Requests) -> None:
    kyanite_faults.add(operation="Put Blob", times=1, drop=True, after_commit=True)
    assert jobs.write_result("shed", b"painted")
    kyanite_requests.assert_count(2, operation="Put Blob", path="results/shed")
    assert not jobs.write_result("shed", b"painted twice")


def test_a_link_expires(jobs: Jobs, kyanite_account: Account, kyanite_clock: Clock) -> None:
    jobs.write_result("shed", b"painted")
    token = generate_blob_sas(
        kyanite_account.name,
        "results",
        "shed",
        account_key=kyanite_account.key,
        permission=BlobSasPermissions(read=True),
        expiry=kyanite_clock.now + timedelta(hours=1),
    )
    link = f"{kyanite_account.endpoints['blob']}/results/shed?{token}"
    assert jobs.is_readable(link)
    kyanite_clock.advance(timedelta(hours=1))
    assert not jobs.is_readable(link)
