"""Vectors of texts: models here and behind endpoints, tokens, similarity."""

import os

# From 1.29 on ONNX Runtime sends what it does to its makers, and keeps an id of the machine, unless this is set before
# it is loaded, by whatever module.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
