# A small image that serves as a user of its own: docker build --tag kyanite . (docs/packaging.md)
FROM python:3.12-slim AS build
# The compiler stays in this stage. KYANITE_COMPILE=yes makes a missing one an error.
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN python -m venv /opt/kyanite && KYANITE_COMPILE=yes /opt/kyanite/bin/pip install --no-cache-dir '.[postgres,s3]'

FROM python:3.12-slim
RUN groupadd --gid 10000 kyanite \
    && useradd --uid 10000 --gid kyanite --home-dir /data --no-create-home --shell /usr/sbin/nologin kyanite \
    && install --directory --owner kyanite --group kyanite --mode 0700 /data
COPY --from=build /opt/kyanite /opt/kyanite
ENV PATH=/opt/kyanite/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    KYANITE_LOCATION=/data \
    KYANITE_HOST=0.0.0.0 \
    KYANITE_ADMIN_PORT=10009
USER 10000:10000
VOLUME /data
# Blob, Queue, Table, File, the admin port, the console, SMB. None needs a privilege.
EXPOSE 10000 10001 10002 10003 10009 10010 10445
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:10009/healthz', timeout=2)"]
ENTRYPOINT ["kyanite"]
CMD ["serve"]
