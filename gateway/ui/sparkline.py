"""Small curves without axes, as SVG made of numbers alone."""

from collections.abc import Sequence


def sparkline(values: Sequence[float], width: int = 56, height: int = 16) -> str:
    """How something went lately, from nothing upwards."""
    return area(values, width, height, low=0, high=max([*values, 1e-9]))


def area(values: Sequence[float], width: int, height: int, *, low: float, high: float) -> str:
    """A curve with its ground tinted."""
    points = list(values) if len(values) > 1 else [*values, *values] or [low, low]
    step = width / (len(points) - 1)
    reach = max(high - low, 1e-9)
    line = " ".join(
        f"{'L' if place else 'M'}{place * step:.1f} {height - 1 - (value - low) / reach * (height - 2):.1f}"
        for place, value in enumerate(points)
    )
    return (
        f'<svg viewBox="0 0 {width} {height}" preserveAspectRatio="none" aria-hidden="true">'
        f'<path d="{line} L{width} {height} L0 {height}Z" fill="currentColor" opacity=".14"/>'
        f'<path d="{line}" fill="none" stroke="currentColor" stroke-width="1.25" vector-effect="non-scaling-stroke"/>'
        "</svg>"
    )
