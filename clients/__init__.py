"""Heavy clients, outside the build: AzCopy, the Azure CLI and the JavaScript libraries against a real server.

Run them with ``make clients``, or some of them with ``make clients ARGS='azcopy node-queue'``. ``installs`` fetches
them into ``.clients/``, ``place`` is the server they meet, ``report`` counts. Each client has a suite: ``transfers``,
``command_line``, and for the libraries a script in ``node/``, in their own language, which ``node`` runs. A service
that the server does not offer is told and not counted.
"""
