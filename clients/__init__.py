"""Heavy clients, outside the build: AzCopy, the Azure CLI and the JavaScript libraries against a real server.

Run them with ``make clients``, or some of them with ``make clients ARGS='azcopy node-queue'``. ``installs`` fetches
them into ``.clients/``, ``workspace`` has their server and folder, ``report`` counts. Each client has a suite:
``transfers``, ``command_line``, and for the libraries a script in ``node/``, which ``node`` runs. A service that the
server does not offer is reported and not counted.
"""
