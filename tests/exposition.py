"""What the daemon tells Prometheus, read by the parser of prometheus_client, which is strict."""

from __future__ import annotations

from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families


def parsed(told: str) -> dict[str, Metric]:
    """The families by their names. Raises ValueError."""
    return {family.name: family for family in text_string_to_metric_families(told)}  # type: ignore[no-untyped-call]
