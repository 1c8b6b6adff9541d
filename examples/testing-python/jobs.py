"""Jobs in a queue, a lease so that one worker at a time does them, and results that are written once."""

from azure.core.exceptions import HttpResponseError, ResourceExistsError
from azure.storage.blob import BlobLeaseClient, BlobServiceClient, LinearRetry
from azure.storage.queue import QueueClient, QueueServiceClient

LEASE_SECONDS = 30
VISIBILITY_SECONDS = 60


class Jobs:
    def __init__(self, connection_string: str) -> None:
        retries = LinearRetry(backoff=0, retry_total=3, random_jitter_range=0)
        self._blobs = BlobServiceClient.from_connection_string(connection_string, retry_policy=retries)
        self._queues = QueueServiceClient.from_connection_string(connection_string)
        self.queue: QueueClient = self._queues.get_queue_client("jobs")
        self.results = self._blobs.get_container_client("results")

    def set_up(self) -> None:
        self.queue.create_queue()
        self.results.create_container()
        self.results.upload_blob("leader", b"")

    def close(self) -> None:
        self._blobs.close()
        self._queues.close()

    def lead(self) -> BlobLeaseClient | None:
        """The lease of the leader; None while another worker has it."""
        lease = BlobLeaseClient(self.results.get_blob_client("leader"))
        try:
            lease.acquire(LEASE_SECONDS)
        except ResourceExistsError:
            return None
        return lease

    def next_job(self) -> str | None:
        """A job that no other worker gets for a while, unless this one fails to finish it."""
        message = self.queue.receive_message(visibility_timeout=VISIBILITY_SECONDS)
        return None if message is None else message.content

    def write_result(self, name: str, result: bytes) -> bool:
        """Write a result once. Returns whether it was this call that wrote it.

        A retry whose first attempt was carried out, and whose answer was lost, meets its own write.
        """
        try:
            self.results.upload_blob(name, result)
        except ResourceExistsError:
            return self.results.download_blob(name).readall() == result
        return True

    def is_readable(self, url: str) -> bool:
        """Whether a link that was given away still opens."""
        from azure.storage.blob import BlobClient

        with BlobClient.from_blob_url(url) as blob:
            try:
                blob.download_blob().readall()
            except HttpResponseError:
                return False
        return True
