"""`python -m recallbench.gate.truth_table`: the table of docs/gate.md, as Markdown."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recallbench.gate.truth import Cell, Kind, Samples, decisions, detectable, draw
from recallbench.gate.truth_settle import Settled, settled
from recallbench.text.tables import table

KINDS: tuple[Kind, ...] = ("graded", "binary")
AT_ONCE = 2_000_000
"""Differences held at a time."""
LISTED = tuple(
    Cell(questions, changed, clusters, kind)
    for questions, changed, clusters, kind in itertools.product((300, 2000), (0.05, 0.3), (0, 10, 30), KINDS)
)
"""The cells that the figures are promised for."""
HARDER = tuple(
    Cell(questions, changed, clusters, kind)
    for questions, changed, clusters, kind in itertools.product((100, 300, 2000), (0.02, 0.05, 0.3), (0, 10, 30), KINDS)
    if questions == 100 or changed == 0.02
)
"""Cells with fewer questions or changes: published as they are."""
DROPS = (0.0, 0.5, 1.0, 2.0)
"""True drops, in margins."""


@dataclass(frozen=True, slots=True)
class Row:
    """One cell. passed, failed: drop in margins -> share of samples. covered: least share of the intervals that hold
    the true change, over the drops. t_passed: PASS at the margin if Student's t alone decided."""

    cell: Cell
    margin: float
    samples: int
    passed: dict[float, float]
    failed: dict[float, float]
    covered: float
    t_passed: float


def row(cell: Cell, samples: int, seed: int = 0) -> Row:
    """Simulate one cell; the margin is the drop that its questions can detect."""
    rng = np.random.default_rng(seed)
    margin = detectable(cell, seed=seed)
    found = {drop: np.zeros(5) for drop in DROPS}
    step = max(1, min(samples, AT_ONCE // cell.questions))
    for drop in DROPS:
        for start in range(0, samples, step):
            drawn = draw(cell, drop * margin, min(step, samples - start), rng)
            flags = (*decisions(drawn, -margin), *decisions(drawn, -drop * margin), t_above(drawn, -margin))
            found[drop] += [one.sum() for one in flags]
        found[drop] /= samples
    return Row(
        cell,
        margin,
        samples,
        {drop: float(one[0]) for drop, one in found.items()},
        {drop: float(one[1]) for drop, one in found.items()},
        min(float(1 - one[2] - one[3]) for one in found.values()),
        float(found[1.0][4]),
    )


def t_above(drawn: Samples, value: float, level: float = 0.95) -> NDArray[np.bool_]:
    """bool `[R]`: whether the low end of the t (cluster-robust) interval alone is above a value."""
    from scipy import stats

    sums, sizes = drawn.differences, np.ones(drawn.differences.shape[1])
    if drawn.sizes is not None:
        sums, sizes = np.add.reduceat(sums, np.cumsum(drawn.sizes) - drawn.sizes, axis=1), drawn.sizes.astype(float)
    count = sums.shape[1]
    mean = sums.sum(axis=1) / sizes.sum()
    error = np.sqrt(count / (count - 1) * ((sums - mean[:, None] * sizes) ** 2).sum(axis=1)) / sizes.sum()
    return np.asarray(mean - stats.t.ppf(0.5 + level / 2, count - 1) * error > value, np.bool_)


def markdown(rows: Iterable[Row]) -> str:
    """Rows as a table, in percent; δ is the margin, and `PASS 0.5δ` the share of PASS at a true drop of half of it."""
    header = [
        *("questions", "changed", "clusters", "kind", "δ", "coverage"),
        *(f"{name} {drop:g}δ" for drop in DROPS for name in ("PASS", "FAIL")),
        "PASS 1δ, t alone",
    ]
    cells = [
        [
            str(one.cell.questions),
            f"{one.cell.changed:.0%}",
            str(one.cell.clusters or "–"),
            one.cell.kind,
            f"{one.margin:.3f}",
            f"{one.covered:.3f}",
            *(f"{100 * side[drop]:.1f}" for drop in DROPS for side in (one.passed, one.failed)),
            f"{100 * one.t_passed:.1f}",
        ]
        for one in rows
    ]
    return table(header, cells, "r" * 3 + "l" + "r" * (len(header) - 4))


def settle_rows(cells: Iterable[Cell], pilots: int) -> Iterator[tuple[Cell, float, Settled, Settled]]:
    """(cell, margin, if nothing changed, if the drop is twice the margin)."""
    for cell in cells:
        margin = detectable(cell)
        yield cell, margin, settled(cell, margin, False, pilots), settled(cell, margin, True, pilots, seed=1)


def settle_markdown(rows: Iterable[tuple[Cell, float, Settled, Settled]]) -> str:
    """Rows as a table."""
    header = (
        *("questions", "changed", "clusters", "kind", "δ"),
        *("named if same", "decided", "named if twice", "decided"),
    )
    cells = [
        [
            str(cell.questions),
            f"{cell.changed:.0%}",
            str(cell.clusters or "–"),
            cell.kind,
            f"{margin:.3f}",
            f"{same.named:.0f}",
            f"{same.decided:.1%}",
            f"{twice.named:.0f}",
            f"{twice.decided:.1%}",
        ]
        for cell, margin, same, twice in rows
    ]
    return table(header, cells, "rrrlrrrrr")


def main(arguments: list[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m recallbench.gate.truth_table", description=__doc__)
    parser.add_argument("--samples", type=int, default=10_000, help="of each cell and drop (default: 10,000)")
    parser.add_argument("--pilots", type=int, default=1_000, help="inconclusive samples of each cell (default: 1,000)")
    given = parser.parse_args(arguments)

    def told(cells: Iterable[Cell]) -> Iterator[Row]:
        for cell in cells:
            print(f"\r{cell}", end="\033[K", file=sys.stderr, flush=True)
            yield row(cell, given.samples)

    print(f"{given.samples:,} samples of each cell and drop.\n\n{markdown(told(LISTED))}\n")
    print(f"Harder cells:\n\n{markdown(told(HARDER))}\n")
    print(f"{given.pilots:,} inconclusive samples of each cell and truth.\n")
    print(settle_markdown(settle_rows(LISTED, given.pilots)))


if __name__ == "__main__":
    main()
