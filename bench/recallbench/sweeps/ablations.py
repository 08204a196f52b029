"""`ablation`: what each switch is worth, alone, on top of all others, on average, and together with another."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from recallbench.evaluation.aggregate import clusters_of, groups_of
from recallbench.evaluation.evaluate import Evaluation
from recallbench.statistics.intervals import Interval, mean_interval
from recallbench.text.display import Displayed, Part, counted
from recallstack.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from recallbench.evaluation.experiment import ExperimentResult

Float = NDArray[np.float64]
States = Mapping[frozenset[str], int]
"""Which switches are on -> place of the system."""
DIGITS = 12
KINDS = ("alone", "last", "shapley", "pair", "all")


@dataclass(frozen=True, eq=False, repr=False)
class Ablation(Displayed):
    """Effects of switches on the mean of measures, question by question.

    switches: their names. table: one row a dataset, group, measure and effect: `kind`, `effect` (the switch, `a × b`,
    or `all`), the mean `difference`, above 0 is better, with its 95 % interval `low`, `high`, and `n`, `clusters`.
    Kinds:

    - `alone`: the switch on, all others off, minus none on.
    - `last`: all on, minus all on but this one.
    - `shapley`: the mean gain of turning it on over all orders in which switches can be turned on (Shapley 1953);
      these add up to `all`.
    - `pair`: how much more two switches are worth together than each on its own, averaged over the states of the
      others (the interaction of a 2^n factorial design, Box, Hunter and Hunter 2005, chapter 5, as a difference of
      differences: twice theirs).
    - `all`: all on, minus none on.
    """

    switches: tuple[str, ...]
    table: pd.DataFrame

    def _parts(self) -> list[Part]:
        from recallbench.text.numbers import mark, spread

        out = []
        columns = ("alone", "last", "shapley")
        for (dataset, group, measure), mine in self.table.groupby(["dataset", "group", "measure"], sort=False):
            at: dict[tuple[str, str], str] = {}
            for one in mine.to_dict("records"):
                interval = Interval(one["difference"], one["low"], one["high"], int(one["n"]), int(one["clusters"]))
                at[one["kind"], one["effect"]] = f"{spread(interval, signed=True)} {mark(interval)}".strip()
            rows = [[name, *(at[kind, name] for kind in columns)] for name in self.switches]
            rows.append(["all", "", "", at["all", "all"]])
            header = ["switch", "alone", "last", "on average (Shapley)"]
            about = f"{measure}{f', {group}' if group else ''}; {counted(int(mine['n'].iloc[0]), 'question')}"
            out.append(Part(str(dataset), about, header, rows))
            pairs = [[effect, text] for (kind, effect), text in at.items() if kind == "pair"]
            if pairs:
                out.append(Part(header=["pair", "together, beyond each on its own"], rows=pairs))
        return out


def ablation(
    result: ExperimentResult,
    switches: Sequence[str] = ("dual", "overfetch", "capacity", "rerank"),
    measures: Sequence[str] = (),
    *,
    by: str | None = None,
) -> Ablation:
    """Effects of switches over all their 2^n combinations.

    result: an experiment with every combination, such as all `inject-…` presets. switches: boolean fields of the
    systems' recipes; systems that differ in anything else are left out. measures: empty is all of the experiment.
    by: category, lang, corpus or split.
    Groups in which no question counts are left out. Raises InputError for a missing combination, an unknown field or
    measure.

    >>> from recallbench import Experiment, ablation
    >>> from recallstack.ranking.presets import presets
    >>> sixteen = [name for name, one in presets().items() if one.kind == "inject" and name != "inject-strict"]
    >>> found = ablation(Experiment("mneme-memories", sixteen, ["nDCG@5"]))
    >>> shapley = found.table[found.table["kind"] == "shapley"]["difference"].sum()
    >>> whole = found.table[found.table["kind"] == "all"]["difference"].iloc[0]
    >>> bool(abs(shapley - whole) < 1e-12)
    True
    """
    import pandas as pd

    if not switches or len(set(switches)) != len(switches):
        raise InputError("an ablation needs at least one switch, each named once")
    rows = []
    for evaluation in result.evaluations:
        states = _states(evaluation, tuple(switches))
        names = [str(measure) for measure in evaluation.measures]
        for name in measures:
            if name not in names:
                raise InputError(f"no measure {name!r} in the experiment; there are: {', '.join(names)}")
        clusters = clusters_of(evaluation)
        effects = list(_effects(tuple(switches), states))
        for group, mask in groups_of(evaluation, by).items():
            for m, measure in enumerate(evaluation.measures):
                if measures and names[m] not in measures:
                    continue
                places = list(states.values())
                there = np.flatnonzero(evaluation.counts[places, m].all(axis=0) & mask)
                if not len(there):
                    continue
                sign = 1.0 if measure.higher_is_better else -1.0
                values = sign * evaluation.values[:, m][:, there]
                mine = [clusters[place] for place in there]
                for kind, effect, weights in effects:
                    found = mean_interval(_combined(weights, values), mine)
                    rows.append(
                        {
                            "dataset": evaluation.labelled.info.name,
                            "group": group,
                            "measure": names[m],
                            "kind": kind,
                            "effect": effect,
                            "difference": found.mean,
                            "low": found.low,
                            "high": found.high,
                            "n": found.n,
                            "clusters": found.clusters,
                        }
                    )
    return Ablation(tuple(switches), pd.DataFrame(rows))


def _states(evaluation: Evaluation, switches: tuple[str, ...]) -> dict[frozenset[str], int]:
    """The system of each combination; systems that differ from the first in another field are left out."""
    where = evaluation.labelled.info.name
    settled: list[tuple[int, frozenset[str], dict[str, Any]]] = []
    for place, run in enumerate(evaluation.runs):
        if all(isinstance(run.spec.get(name), bool) for name in switches):
            rest = {key: value for key, value in run.spec.items() if key not in (*switches, "name", "description")}
            settled.append((place, frozenset(name for name in switches if run.spec[name]), rest))
    if not settled:
        raise InputError(f"{where}: no system has the switches {', '.join(switches)} in its recipe")
    out = {state: place for place, state, rest in settled if rest == settled[0][2]}
    for count in range(len(switches) + 1):
        for state in itertools.combinations(switches, count):
            if frozenset(state) not in out:
                raise InputError(f"{where}: no system has on exactly: {', '.join(state) or 'none of the switches'}")
    return out


def _effects(switches: tuple[str, ...], states: States) -> list[tuple[str, str, dict[int, float]]]:
    """(kind, effect, place of a system -> its weight); an effect is the weighted sum of the systems' values."""
    whole, nothing = frozenset(switches), frozenset[str]()
    out = [("alone", one, {states[frozenset({one})]: 1.0, states[nothing]: -1.0}) for one in switches]
    out += [("last", one, {states[whole]: 1.0, states[whole - {one}]: -1.0}) for one in switches]
    for one in switches:
        others, weights = [name for name in switches if name != one], dict.fromkeys(states.values(), 0.0)
        for count in range(len(switches)):
            share = math.factorial(count) * math.factorial(len(others) - count) / math.factorial(len(switches))
            for before in map(frozenset, itertools.combinations(others, count)):
                weights[states[before | {one}]] += share
                weights[states[before]] -= share
        out.append(("shapley", one, weights))
    for a, b in itertools.combinations(switches, 2):
        others, weights = [name for name in switches if name not in (a, b)], dict.fromkeys(states.values(), 0.0)
        share = 1.0 / 2 ** len(others)
        for count in range(len(others) + 1):
            for rest in map(frozenset, itertools.combinations(others, count)):
                for on, sign in ((frozenset({a, b}), 1), (frozenset({a}), -1), (frozenset({b}), -1), (nothing, 1)):
                    weights[states[rest | on]] += sign * share
        out.append(("pair", f"{a} × {b}", weights))
    out.append(("all", "all", {states[whole]: 1.0, states[nothing]: -1.0}))
    return out


def _combined(weights: Mapping[int, float], values: Float) -> Float:
    """float64 `[n]`: the weighted sums, without the dust that shares leave where they cancel."""
    out = np.zeros(values.shape[1])
    for place, weight in weights.items():
        out += weight * values[place]
    return np.round(out, DIGITS)
