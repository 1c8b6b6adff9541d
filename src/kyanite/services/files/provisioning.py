"""What a share is provisioned with: settings that are stored and returned, and figures that follow from them.

Nothing here makes a share faster or slower. Clients that manage shares set these values and read them again, and some
rely on the figures that the service derives: the baseline of a share on solid-state disks by its quota, the burst by
the provisioned operations. Downgrades are never refused, so the time from which on they are allowed is that of the
share's creation.
"""

from kyanite.model.files.share import ShareRecord, ShareSettings
from kyanite.services.rest.headers import flag_of, number_of
from kyanite.wire import http_date
from kyanite.wire.malformed import Malformed

Figures = dict[str, str]
"""By the name of their headers."""

_IOPS, _BANDWIDTH = "x-ms-share-provisioned-iops", "x-ms-share-provisioned-bandwidth-mibps"
_SNAPSHOTS = "x-ms-enable-snapshot-virtual-directory-access"
_FLAGS = (_SNAPSHOTS, "x-ms-enable-smb-directory-lease", "x-ms-share-paid-bursting-enabled")
_NUMBERS = ("x-ms-share-paid-bursting-max-bandwidth-mibps", "x-ms-share-paid-bursting-max-iops")
_BOUNDS = {
    _IOPS: (500, 102_400, "FileShareProvisionedIopsInvalid"),
    _BANDWIDTH: (60, 10_340, "FileShareProvisionedBandwidthInvalid"),
}
"""The least of a share on disks, the most of one on solid-state disks, and the error code for anything else."""

_DOWNGRADE = "x-ms-share-next-allowed-{}-downgrade-time"
_ELEMENTS = {
    _IOPS: "ProvisionedIops",
    "x-ms-share-provisioned-ingress-mbps": "ProvisionedIngressMBps",
    "x-ms-share-provisioned-egress-mbps": "ProvisionedEgressMBps",
    _BANDWIDTH: "ProvisionedBandwidthMiBps",
    _DOWNGRADE.format("quota"): "NextAllowedQuotaDowngradeTime",
    _SNAPSHOTS: "EnableSnapshotVirtualDirectoryAccess",
    "x-ms-enable-smb-directory-lease": "EnableSmbDirectoryLease",
    "x-ms-share-paid-bursting-enabled": "PaidBurstingEnabled",
    "x-ms-share-paid-bursting-max-iops": "PaidBurstingMaxIops",
    "x-ms-share-paid-bursting-max-bandwidth-mibps": "PaidBurstingMaxBandwidthMibps",
    "x-ms-share-included-burst-iops": "IncludedBurstIops",
    "x-ms-share-max-burst-credits-for-iops": "MaxBurstCreditsForIops",
    _DOWNGRADE.format("provisioned-iops"): "NextAllowedProvisionedIopsDowngradeTime",
    _DOWNGRADE.format("provisioned-bandwidth"): "NextAllowedProvisionedBandwidthDowngradeTime",
}


def settings_of(headers: dict[str, str]) -> Figures:
    """What a request sets."""
    found = {name: str(flag_of(headers, name)).lower() for name in _FLAGS if headers.get(name)}
    found |= {name: str(number_of(headers, name)) for name in _NUMBERS if headers.get(name)}
    for name, (least, most, code) in _BOUNDS.items():
        number = number_of(headers, name)
        if number is None:
            continue
        if not least <= number <= most:
            raise Malformed(code, HeaderName=name, HeaderValue=headers[name])
        found[name] = str(number)
    return found


def figures_of(record: ShareRecord) -> Figures:
    """The figures of a share: those that were set, and those that follow from them."""
    settings = record.settings
    usual = {_SNAPSHOTS: "true"} if settings.protocol == "NFS" else {}
    if _IOPS in settings.others or _BANDWIDTH in settings.others:
        usual |= _provisioned(settings, http_date.encode(record.created_at))
    elif _is_on_solid_state(settings):
        usual |= _by_quota(settings, http_date.encode(record.created_at))
    return usual | settings.others


def elements(record: ShareRecord) -> str:
    """The same as elements of List Shares."""
    return "".join(
        f"<{_ELEMENTS[name]}>{value}</{_ELEMENTS[name]}>" for name, value in figures_of(record).items()
    )


def _is_on_solid_state(settings: ShareSettings) -> bool:
    return settings.tier == "Premium" or settings.protocol == "NFS"


def _by_quota(settings: ShareSettings, allowed_from: str) -> Figures:
    """The provisioned model in which everything follows from the quota."""
    ingress, egress = _share_of(settings.quota_gib, 4), _share_of(settings.quota_gib, 6)
    return {
        _IOPS: str(min(3000 + settings.quota_gib, 102_400)),
        "x-ms-share-provisioned-ingress-mbps": str(40 + ingress),
        "x-ms-share-provisioned-egress-mbps": str(60 + egress),
        _BANDWIDTH: str(min(100 + ingress + egress, 10_340)),
        _DOWNGRADE.format("quota"): allowed_from,
    }


def _provisioned(settings: ShareSettings, allowed_from: str) -> Figures:
    """The model in which size, operations and bandwidth are set separately. What is not set has a usual value."""
    if _is_on_solid_state(settings):
        iops, bandwidth, burst = 3000 + settings.quota_gib, 100 + _share_of(settings.quota_gib, 10), 10_000
    else:
        iops = 1000 + _share_of(settings.quota_gib, 20)
        bandwidth, burst = 60 + _share_of(settings.quota_gib, 2), 5000
    iops = int(settings.others.get(_IOPS, min(iops, _BOUNDS[_IOPS][1])))
    burst = max(3 * iops, burst)
    return {
        _IOPS: str(iops),
        _BANDWIDTH: str(min(bandwidth, _BOUNDS[_BANDWIDTH][1])),
        "x-ms-share-included-burst-iops": str(burst),
        "x-ms-share-max-burst-credits-for-iops": str((burst - iops) * 3600),
        _DOWNGRADE.format("quota"): allowed_from,
        _DOWNGRADE.format("provisioned-iops"): allowed_from,
        _DOWNGRADE.format("provisioned-bandwidth"): allowed_from,
    }


def _share_of(quota_gib: int, hundredths: int) -> int:
    return -(-quota_gib * hundredths // 100)
