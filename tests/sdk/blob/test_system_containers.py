"""System containers with the official client."""

from azure.storage.blob import BlobAnalyticsLogging

from tests.sdk.clients import Sdk, done, items, names, refused


async def test_logs_are_listed_where_system_containers_are_wanted(sdk: Sdk) -> None:
    service = sdk.service()
    before = (await done(service.get_service_properties()))["analytics_logging"]
    await done(service.set_service_properties(analytics_logging=BlobAnalyticsLogging(read=True)))
    await done(service.set_service_properties(analytics_logging=before))
    assert "$logs" in await names(service.list_containers(include_system=True))
    assert "$logs" not in await names(service.list_containers())
    logs = service.get_container_client("$logs")
    assert (await done(logs.get_container_properties())).name == "$logs"
    assert await items(logs.list_blobs()) == []
    with refused(403, "AuthorizationFailure"):
        await done(logs.upload_blob("mine", b""))
    with refused(403, "AuthorizationFailure"):
        await done(logs.delete_container())
    with refused(403, "AuthorizationFailure"):
        await done(service.create_container("$blobchangefeed"))
