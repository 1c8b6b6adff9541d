"""What a server that was started with ``--testing`` has besides the others."""

from kyanite.server.clock import TestingClock
from kyanite.server.service_table import SERVICES
from kyanite.server.site import Site
from kyanite.server.testing.accounts import Accounts
from kyanite.server.testing.fault_table import FaultTable
from kyanite.server.testing.handler import Testing
from kyanite.server.testing.http_api import TestingApi
from kyanite.server.testing.recorder import Recorder


def make_testing() -> Testing:
    """To be called before the first fork."""
    return Testing(TestingClock(), FaultTable(), Recorder())


def testing_api(testing: Testing, site: Site) -> TestingApi:
    """To which the admin port passes its requests on."""
    bases = {name: url for name, url in site.services.items() if SERVICES[name].load is not None}
    return TestingApi(testing, Accounts(site.folder, bases))
