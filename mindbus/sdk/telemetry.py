"""What the buffer holds, as metrics."""

from prometheus_client import Gauge

BUFFERED_ARTIFACTS = Gauge("mindbus_buffered_artifacts", "Artifacts in the local buffer", ["owner"])
BUFFERED_BYTES = Gauge("mindbus_buffered_bytes", "Bytes in the local buffer", ["owner"])
