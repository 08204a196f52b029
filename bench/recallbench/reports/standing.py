"""How the systems of a run stand to one another: paired differences, significance, detectable differences."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recallbench.evaluation.aggregate import cells, clusters_of
from recallbench.evaluation.evaluate import Evaluation
from recallbench.statistics.intervals import Interval, mean_interval
from recallbench.statistics.paired import detectable_difference, holm, questions_needed, randomization_p, units_of

Float = NDArray[np.float64]
ALPHA = 0.05
GUARDS = ("Leak", "Stale", "Abstain")
"""Measures that may not get worse unseen while the primary one gets better."""


@dataclass(frozen=True, slots=True)
class Paired:
    """One system against another: mean difference with its interval (above 0 is better), p and p by Holm's method."""

    interval: Interval
    p: float
    adjusted: float

    @property
    def significant(self) -> bool:
        return self.adjusted <= ALPHA


@dataclass(frozen=True, eq=False)
class Standing:
    """All that the tables of a report say about the systems of a run.

    means: of each (system, measure). order: systems by the primary measure, best first; equals as in the run.
    baseline: what the others are set against; None where the run names none. reference: the baseline, else the best.
    to_reference: (system, measure) -> interval of the paired difference, without the reference itself.
    to_best, to_base: by system, on the primary measure, with Holm's correction over the family of the other systems.
    relief: system -> the measures of harm in which it is shown to be better than the baseline, corrected over all of
    them and all systems.
    tied: systems that are not told apart from the best, the best itself left out.
    """

    evaluation: Evaluation
    means: dict[tuple[str, str], Interval]
    order: tuple[str, ...]
    baseline: str | None
    to_reference: dict[tuple[str, str], Interval]
    to_best: dict[str, Paired]
    to_base: dict[str, Paired]
    relief: dict[str, tuple[str, ...]]

    @property
    def primary(self) -> str:
        return str(self.evaluation.measures[0])

    @property
    def best(self) -> str:
        return self.order[0]

    @property
    def reference(self) -> str:
        return self.best if self.baseline is None else self.baseline

    @property
    def proven(self) -> tuple[str, ...]:
        """Systems shown to be better than the baseline, best first. The best by its mean need not be among them."""
        return tuple(
            name
            for name in self.order
            if name in self.to_base and self.to_base[name].significant and self.to_base[name].interval.mean > 0
        )

    @property
    def pick(self) -> str:
        """What the verdict is about: of those shown to be better the best that harms no more, else the best of them.

        Where none is, the one that is spared harm at no loss; else the best.
        """
        harmless = [name for name in self.proven if not self.harms(name)]
        return next(iter((*harmless, *self.proven)), self.spared or self.best)

    @property
    def spared(self) -> str | None:
        """A system that is shown to harm less than the baseline, harms in nothing more, and has no lower mean.

        Of several the one that gains most in the first measure of harm in which one gains; of equals the best.
        """
        found = [
            name
            for name in self.order
            if self.relief.get(name) and not self.harms(name) and self.to_base[name].interval.mean >= 0
        ]
        first = next((one for one in self.guards if any(one in self.relief[name] for name in found)), None)
        if first is None:
            return None
        gaining = [name for name in found if first in self.relief[name]]
        return max(gaining, key=lambda name: self.to_reference[name, first].mean)

    @property
    def guards(self) -> tuple[str, ...]:
        """The measures of harm of this run."""
        return _guards(self.evaluation)

    def harms(self, system: str) -> tuple[str, ...]:
        """The measures of harm in which a system is worse than the baseline by its 95 % interval, uncorrected.

        Nothing hides a harm; a gain has to be shown (`relief`).
        """
        if self.baseline in (None, system):
            return ()
        changes = {name: self.to_reference[system, name] for name in self.guards}
        return tuple(name for name, change in changes.items() if change.n and change.high < 0)

    @property
    def second(self) -> str | None:
        """What the pick is shown beside: the baseline, or the next system if there is no other baseline."""
        if self.baseline is not None and self.baseline != self.pick:
            return self.baseline
        return self.order[1] if len(self.order) > 1 else None

    @property
    def tied(self) -> tuple[str, ...]:
        return tuple(name for name in self.order[1:] if not self.to_best[name].significant)

    def tone(self, system: str) -> str:
        """`best`, `tied` or `behind`."""
        if system == self.best:
            return "best"
        return "behind" if self.to_best[system].significant else "tied"


def standing(evaluation: Evaluation, baseline: str | None = None) -> Standing:
    """Set the systems of an evaluation against one another. baseline: one of them, or None."""
    means = {(cell.system, cell.measure): cell.interval for cell in cells(evaluation)}
    primary = evaluation.measures[0]
    sign = -1.0 if primary.higher_is_better else 1.0

    def key(system: str) -> float:
        mean = means[system, str(primary)].mean
        return math.inf if math.isnan(mean) else sign * mean

    order = tuple(sorted(evaluation.systems, key=key))
    reference = baseline or order[0]
    against = {
        (system, str(measure)): mean_interval(*paired(evaluation, m, system, reference))
        for system in evaluation.systems
        if system != reference
        for m, measure in enumerate(evaluation.measures)
    }
    to_best = _family(evaluation, order[0])
    to_base = {} if baseline is None else to_best if baseline == order[0] else _family(evaluation, baseline)
    relief = {} if baseline is None else _relief(evaluation, baseline)
    return Standing(evaluation, means, order, baseline, against, to_best, to_base, relief)


def _guards(evaluation: Evaluation) -> tuple[str, ...]:
    return tuple(name for name in map(str, evaluation.measures) if name.startswith(GUARDS))


def _relief(evaluation: Evaluation, baseline: str) -> dict[str, tuple[str, ...]]:
    names = [str(measure) for measure in evaluation.measures]
    pairs, p = [], []
    for system in evaluation.systems:
        for guard in _guards(evaluation) if system != baseline else ():
            change, clusters = paired(evaluation, names.index(guard), system, baseline)
            if len(change):
                pairs.append((system, guard, mean_interval(change, clusters).mean))
                p.append(randomization_p(units_of(change, clusters)))
    out: dict[str, tuple[str, ...]] = {}
    for (system, guard, mean), adjusted in zip(pairs, holm(p) if p else (), strict=True):
        if adjusted <= ALPHA and mean > 0:
            out[system] = (*out.get(system, ()), guard)
    return out


def paired(evaluation: Evaluation, m: int, system: str, other: str) -> tuple[Float, list[str | None]]:
    """float64 `[n]` differences of measure m, system minus other, signed so that above 0 is better; their clusters."""
    a, b = evaluation.systems.index(system), evaluation.systems.index(other)
    places = np.flatnonzero(evaluation.counts[a, m] & evaluation.counts[b, m])
    sign = 1.0 if evaluation.measures[m].higher_is_better else -1.0
    with np.errstate(invalid="ignore"):  # infinite costs of failed questions: inf - inf is unknown
        change = sign * (evaluation.values[a, m, places] - evaluation.values[b, m, places])
    clusters = clusters_of(evaluation)
    return change, [clusters[place] for place in places]


def _family(evaluation: Evaluation, other: str) -> dict[str, Paired]:
    """Every other system minus this one, on the primary measure."""
    names = [name for name in evaluation.systems if name != other]
    changes = [paired(evaluation, 0, name, other) for name in names]
    p = [randomization_p(units_of(*one)) if len(one[0]) else 1.0 for one in changes]
    adjusted = holm(p) if p else []
    return {
        name: Paired(mean_interval(*change), one, q)
        for name, change, one, q in zip(names, changes, p, adjusted, strict=True)
    }


@dataclass(frozen=True, slots=True)
class Resolution:
    """How finely a measure resolves between the best system and the others that differ from it.

    detectable: median, least and greatest of the smallest differences found with power 0.8, None if no pair differs.
    """

    measure: str
    questions: int
    clusters: int
    differ: int
    pairs: int
    detectable: tuple[float, float, float] | None


def resolutions(held: Standing) -> list[Resolution]:
    """The resolution of every measure."""
    evaluation, out = held.evaluation, []
    for m, measure in enumerate(evaluation.measures):
        intervals = [mean_interval(*paired(evaluation, m, name, held.best)) for name in held.order[1:]]
        found = [value for one in intervals if np.isfinite(value := detectable_difference(one)) and value > 0]
        spread = (float(np.median(found)), min(found), max(found)) if found else None
        questions = max((one.n for one in intervals), default=0)
        clusters = max((one.clusters for one in intervals), default=0)
        out.append(Resolution(str(measure), questions, clusters, len(found), len(intervals), spread))
    return out


def needed(held: Standing, most: int = 3) -> list[tuple[str, float, int]]:
    """(tied system, difference to the best, questions that would tell it from the best) of the nearest ones.

    Systems that are equal on average are left out: no number of questions tells them apart.
    """
    out = []
    for name in held.tied:
        interval = held.to_best[name].interval
        questions = questions_needed(interval, abs(interval.mean))
        if questions > 0:
            out.append((name, -interval.mean, questions))
    return out[:most]
