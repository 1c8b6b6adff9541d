"""Heavy clients, outside the build: AzCopy, the Azure CLI, and libraries in other languages against a real server.

Run them with ``make clients``, or some of them with ``make clients ARGS='azcopy pyarrow'``. ``installs`` fetches
them into ``.clients/``, ``workspace`` has their server and folder, ``report`` counts. Each client has a suite:
``transfers``, ``command_line``; for the JavaScript libraries a script in ``node/``, which ``node`` runs; for pyarrow
(C++) and obstore (Rust) a module, ``arrow_files`` and ``rust_objects``, which ``python`` runs in their environment. A
service that the server does not offer is reported and not counted.
"""
