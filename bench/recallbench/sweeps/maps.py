"""`sweep_map`: rank fusion over k and pool depth, with intervals, each channel alone, and held-out choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from recallbench.cache.candidates import CandidateCache
from recallbench.datasets.model import LabelledSet, Question
from recallbench.measures import parse_measure
from recallbench.statistics.intervals import FEW_CLUSTERS, Interval, cluster_intervals
from recallbench.sweeps.choose import gather
from recallbench.sweeps.score import group_sums
from recallbench.text.display import Displayed, Part, counted
from recallstack.errors import InputError
from recallstack.ranking.fusion import Fusion
from recallstack.ranking.pipeline import Retrieve
from recallstack.ranking.recipes import SearchRecipe
from recallstack.ranking.specs import ChannelName

if TYPE_CHECKING:
    import pandas as pd

Float = NDArray[np.float64]
Counts = NDArray[np.int64]
Split = Literal["dev", "test"]
Cell = tuple[float, int]
"""A k and a pool."""

K = tuple(range(1, 201))
POOLS = tuple(range(10, 401, 10))


@dataclass(frozen=True, eq=False, repr=False)
class SweepMap(Displayed):
    """Rank fusion of some channels at every k and pool, and each channel alone, summed up by cluster.

    dataset, channels, measures: names. k: `[K]`; pools: `[P]`. splits: of each of C clusters, `dev`, `test` or None.
    sums: float64 `[P, K, M, C]`, sums of each measure over the questions of a cluster. counted: int64 `[M, C]`, how
    many questions count. alone: channel -> float64 `[M, C]`, sums of the channel alone, all of its rows. higher: bool
    `[M]`, whether higher is better.
    """

    dataset: str
    channels: tuple[ChannelName, ...]
    measures: tuple[str, ...]
    k: tuple[float, ...]
    pools: tuple[int, ...]
    splits: tuple[str | None, ...]
    sums: Float
    counted: Counts
    alone: Mapping[ChannelName, Float]
    higher: NDArray[np.bool_]

    def table(
        self, measure: str | None = None, split: Split | None = None, against: Cell | ChannelName | None = None
    ) -> pd.DataFrame:
        """One row a k and pool: mean with its 95 % interval `low`, `high`, robust to clusters, and n, clusters.

        measure: None is the first. split: None is all questions. against: a (k, pool) of the map or a channel alone:
        the row then also has the paired `difference`, above 0 is better, with `difference_low`, `difference_high`.
        Raises InputError for what the map does not hold.
        """
        import pandas as pd

        m, part = self._measure(measure), self._part(split)
        flat = self.sums[:, :, m, :].reshape(-1, self.sums.shape[3])[:, part]
        out = {
            "k": np.tile(np.array(self.k, np.float64), len(self.pools)),
            "pool": np.repeat(np.array(self.pools), len(self.k)),
            **_columns(flat, self.counted[m, part], ("mean", "low", "high")),
        }
        if against is not None:
            change = self._change(flat, self._sums(against, m)[part], m)
            names = ("difference", "difference_low", "difference_high")
            out.update(
                {
                    name: values
                    for name, values in _columns(change, self.counted[m, part], names).items()
                    if name in names
                }
            )
        return pd.DataFrame(out)

    def channel(self, name: ChannelName, measure: str | None = None, split: Split | None = None) -> Interval:
        """A channel alone, with its interval."""
        m, part = self._measure(measure), self._part(split)
        return _interval(self._sums(name, m)[part], self.counted[m, part])

    def cell(self, at: Cell, measure: str | None = None, split: Split | None = None) -> Interval:
        """The fusion at a (k, pool), with its interval."""
        m, part = self._measure(measure), self._part(split)
        return _interval(self._sums(at, m)[part], self.counted[m, part])

    def difference(
        self,
        new: Cell | ChannelName,
        old: Cell | ChannelName,
        measure: str | None = None,
        split: Split | None = None,
    ) -> Interval:
        """The paired difference of two cells or channels, new minus old, above 0 is better."""
        m, part = self._measure(measure), self._part(split)
        change = self._change(self._sums(new, m)[part], self._sums(old, m)[part], m)
        return _interval(change, self.counted[m, part])

    def best(self, measure: str | None = None, split: Split | None = None) -> Cell:
        """The (k, pool) of the best mean; among equals the smallest pool, then the smallest k."""
        m = self._measure(measure)
        means = self._goodness(m, self._part(split))
        place = int(np.nanargmax(np.round(means, 12)))
        return self.k[place % len(self.k)], self.pools[place // len(self.k)]

    def best_channel(self, measure: str | None = None, split: Split | None = None) -> ChannelName:
        """The channel that is best alone."""
        m, part = self._measure(measure), self._part(split)
        sign = 1.0 if self.higher[m] else -1.0
        return max(self.alone, key=lambda name: sign * float(self.alone[name][m, part].sum()))

    def held_out(self, against: Cell | ChannelName, measure: str | None = None) -> tuple[Interval, tuple[Cell, ...]]:
        """Leave one cluster out: a cell chosen on the other clusters, measured on this one, minus `against`.

        Returns the paired difference over all clusters, above 0 is better, and the cell that each of them was given.
        The interval takes the choices as given (they share most of what they were made on): it is a little too narrow.
        Raises InputError with fewer than two clusters.
        """
        m = self._measure(measure)
        used = np.flatnonzero(self.counted[m])
        if len(used) < 2:
            raise InputError(f"{self.dataset}: leaving one cluster out needs at least two clusters")
        flat = self.sums[:, :, m, :].reshape(-1, self.sums.shape[3])[:, used]
        rest = (flat.sum(axis=1, keepdims=True) - flat) / (self.counted[m, used].sum() - self.counted[m, used])
        chosen = np.nanargmax(np.round(rest if self.higher[m] else -rest, 12), axis=0)
        mine = flat[chosen, np.arange(len(used))]
        change = self._change(mine, self._sums(against, m)[used], m)
        cells = tuple((self.k[one % len(self.k)], self.pools[one // len(self.k)]) for one in chosen.tolist())
        return _interval(change, self.counted[m, used]), cells

    def _measure(self, name: str | None) -> int:
        if name is None:
            return 0
        if name not in self.measures:
            raise InputError(f"{self.dataset}: {name!r} is not in the map; it holds {', '.join(self.measures)}")
        return self.measures.index(name)

    def _part(self, split: Split | None) -> NDArray[np.bool_]:
        part = np.array([split is None or one == split for one in self.splits], np.bool_)
        if not part.any():
            raise InputError(f"{self.dataset}: no question is of split {split!r}")
        return part

    def _sums(self, at: Cell | ChannelName, m: int) -> Float:
        if isinstance(at, str):
            if at not in self.alone:
                raise InputError(f"{self.dataset}: channel {at!r} is not in the map; it holds {', '.join(self.alone)}")
            alone: Float = self.alone[at][m]
            return alone
        k, pool = at
        if k not in self.k or pool not in self.pools:
            raise InputError(f"{self.dataset}: k {k:g} at pool {pool} is not in the map")
        out: Float = self.sums[self.pools.index(pool), self.k.index(k), m]
        return out

    def _change(self, new: Float, old: Float, m: int) -> Float:
        change: Float = new - old
        return change if self.higher[m] else -change

    def _goodness(self, m: int, part: NDArray[np.bool_]) -> Float:
        count = max(1, int(self.counted[m, part].sum()))
        means: Float = self.sums[:, :, m, :][:, :, part].sum(axis=2).reshape(-1) / count
        return means if self.higher[m] else -means

    def _parts(self) -> list[Part]:
        from recallbench.text.numbers import spread

        grid = f"{counted(len(self.k), 'k', 'values of k')} × {counted(len(self.pools), 'pool depth')}"
        about = f"{grid} over {', '.join(self.channels)}"
        rows = []
        for measure in self.measures:
            k, pool = self.best(measure)
            rows.append(
                [measure, f"k = {k:g}, pool {pool}", spread(self.cell((k, pool), measure))]
                + [spread(self.channel(name, measure)) for name in self.alone]
            )
        notes = [
            "The best cell was chosen and measured on the same questions; `held_out` and `split` keep these apart."
        ]
        if 0 < len(self.splits) < FEW_CLUSTERS:
            notes.append(f"Intervals over {len(self.splits)} clusters (under {FEW_CLUSTERS}) are rough.")
        header = ["", "best cell", "fused", *(f"{name} alone" for name in self.alone)]
        return [Part(self.dataset, about, header, rows, notes)]


def sweep_map(
    labelled: LabelledSet | str | Path,
    channels: Sequence[ChannelName] = ("vector", "bm25"),
    measures: Sequence[str] = ("R@20", "nDCG@5"),
    *,
    k: Sequence[float] = K,
    pools: Sequence[int] = POOLS,
    base: SearchRecipe | None = None,
    depth: int = 20,
    data: Path | None = None,
    cache: Retrieve | None = None,
) -> SweepMap:
    """Fuse the channels at every k and pool depth (`recallbench.sweeps.score`), and measure each channel alone.

    labelled: a set, the name of one, or a folder. base: settings of the channels; its own channels, fusion and pool
    are not used. depth: rows of a fused list, at least the deepest cutoff. data: where a public set lies. cache: how
    candidates are got; None computes them once and keeps them in memory. 200 k × 40 pools over LoCoMo take seconds
    with numba (extra `fast`), minutes without.
    Raises InputError for an unknown set or measure, an empty grid, or a depth below a cutoff.

    >>> found = sweep_map("mneme-memories", measures=["nDCG@5"], k=(1, 60), pools=(20, 100))
    >>> found.table().round(3)[["k", "pool", "mean", "n"]]
          k  pool   mean    n
    0   1.0    20  0.412  332
    1  60.0    20  0.398  332
    2   1.0   100  0.411  332
    3  60.0   100  0.395  332
    >>> found.best(split="dev")
    (1, 20)
    >>> found.difference((1, 20), "vector", split="test").mean > 0
    True
    """
    from recallbench.datasets.registry import load

    known = labelled if isinstance(labelled, LabelledSet) else load(str(labelled), data=data)
    parsed = tuple(parse_measure(name) for name in measures)
    deepest = max((measure.cutoff or 0 for measure in parsed), default=0)
    if not (k and pools and parsed and channels):
        raise InputError("a map needs at least one k, pool, measure and channel")
    if depth < deepest:
        raise InputError(f"depth {depth} is below the cutoff of a measure ({deepest}); raise it")
    retrieve = cache if cache is not None else CandidateCache()
    clusters, splits, groups = _clusters(known.questions)
    recipe = replace(
        base or SearchRecipe("map"),
        channels=tuple(channels),
        fusion=Fusion(),
        rerank="off",
        source_weights="off",
        sensitivity="off",
    )

    def summed(recipe: SearchRecipe, cells: Sequence[tuple[Fusion, int]]) -> tuple[Float, Counts]:
        prepared, grades, _ = gather(known, retrieve, recipe, max(pool for _, pool in cells), depth)
        return group_sums(prepared, grades, cells, parsed, groups, limit=depth, default_rel=known.info.default_rel)

    grid = [(Fusion("rrf", k=one), pool) for pool in pools for one in k]
    sums, counted_ = summed(recipe, grid)
    rows = max(depth, max(pools))
    single = Fusion("single")
    alone = {
        name: summed(replace(recipe, channels=(name,), fusion=single), [(single, rows)])[0][0] for name in channels
    }
    return SweepMap(
        known.info.name,
        tuple(channels),
        tuple(map(str, parsed)),
        tuple(k),
        tuple(pools),
        splits,
        sums.reshape(len(pools), len(k), len(parsed), len(clusters)),
        counted_[0],
        alone,
        np.array([measure.higher_is_better for measure in parsed], np.bool_),
    )


def _clusters(questions: Sequence[Question]) -> tuple[tuple[str, ...], tuple[str | None, ...], NDArray[np.int64]]:
    """Names of the clusters, the split of each, and the cluster of each question (int64 `[Q]`).

    A question without a cluster is one of its own; one cluster in two splits is two.
    """
    keys = [(f"cluster {one.cluster}" if one.cluster else f"question {one.id}", one.split) for one in questions]
    place = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return (
        tuple(name for name, _ in place),
        tuple(split for _, split in place),
        np.array([place[key] for key in keys], np.int64),
    )


def _columns(sums: Float, counted: Counts, names: tuple[str, str, str]) -> dict[str, NDArray[np.generic]]:
    mean, half = cluster_intervals(sums, counted)
    low, high = mean - half, mean + half
    used = int((counted > 0).sum())
    return {
        **dict(zip(names, (mean, low, high), strict=True)),
        "n": np.full(len(mean), int(counted.sum())),
        "clusters": np.full(len(mean), used),
    }


def _interval(sums: Float, counted: Counts) -> Interval:
    [mean], [half] = cluster_intervals(sums[None], counted)
    return Interval(float(mean), float(mean - half), float(mean + half), int(counted.sum()), int((counted > 0).sum()))
