"""`compare`: one system against another, question by question, as data frames that show themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from recallbench.measures import parse_measure
from recallbench.statistics.intervals import FEW_CLUSTERS, Interval
from recallbench.statistics.paired import RESAMPLES, holm
from recallbench.statistics.paired import compare as paired_compare
from recallbench.text.display import Displayed, Part
from recallstack.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from recallbench.evaluation.experiment import ExperimentResult

_NEEDED = ("system", "question", "measure", "value")
_KEYS = ["dataset", "corpus", "question", "measure"]


@dataclass(frozen=True, eq=False, repr=False)
class Compared(Displayed):
    """System `new` against system `old`; differences are signed so that above 0 is better.

    table: one row a dataset, group and measure: mean of `old` and of `new`, mean `difference` with its 95 % interval
    `low`, `high` (robust to clusters), `p` of the randomization test, `p_holm` (Holm over the rows of the table),
    questions that are `better`, `worse`, `same`, their number `n`, `clusters`, and `detectable`, the smallest true
    difference that this set would find with power 0.8.
    questions: one row a dataset, question and measure that counts in both: `old`, `new`, `difference`, and, of an
    experiment whose systems leave a trace, `lost`: the relevant memories that `new` lost, and at which stage.
    """

    old: str
    new: str
    table: pd.DataFrame
    questions: pd.DataFrame

    def flips(self, measure: str | None = None, most: int | None = 10) -> pd.DataFrame:
        """The questions that changed, the worst losses first, then the greatest gains; at most so many of each.

        measure: None is the first one. Raises InputError for a measure that was not compared.
        """
        import pandas as pd

        names = list(dict.fromkeys(self.questions["measure"]))
        measure = names[0] if measure is None and names else measure
        if measure not in names:
            raise InputError(f"measure {measure!r} was not compared; compared: {', '.join(names) or 'none'}")
        mine = self.questions[self.questions["measure"] == measure].sort_values("difference", kind="stable")
        lost = mine[mine["difference"] < 0]
        won = mine[mine["difference"] > 0].sort_values("difference", ascending=False, kind="stable")
        return pd.concat([lost.head(len(lost) if most is None else most), won.head(len(won) if most is None else most)])

    def _parts(self) -> list[Part]:
        from recallbench.text.numbers import fine, mark, number, probability, spread

        grouped = bool((self.table["group"] != "").any())
        several = self.table["dataset"].nunique() > 1
        rows, few = [], False
        for one in self.table.to_dict("records"):
            n = int(one["n"])
            low, high = (one["low"], one["high"]) if n > 1 else (np.nan, np.nan)  # one question has no interval
            interval = Interval(one["difference"], low, high, n, int(one["clusters"]))
            few = few or 0 < interval.clusters < FEW_CLUSTERS
            name = " · ".join(
                str(part)
                for part, shown in ((one["dataset"], several), (one["group"], grouped), (one["measure"], True))
                if shown and part
            )
            rows.append(
                [
                    name,
                    number(one["old"]),
                    number(one["new"]),
                    f"{spread(interval, signed=True)} {mark(interval)}".strip(),
                    probability(one["p_holm"]),
                    f"{one['better']} / {one['worse']} / {one['same']}",
                    fine(one["detectable"]),
                ]
            )
        notes = [
            "Difference: above 0 is better, brackets are 95 % intervals; p after Holm's correction over these rows."
        ]
        if few:
            notes.append(f"Intervals over fewer than {FEW_CLUSTERS} clusters are rough.")
        header = ["", self.old, self.new, "difference", "p", "better / worse / same", "detectable"]
        about = ", ".join(dict.fromkeys(map(str, self.table["dataset"])))
        return [Part(f"{self.new} against {self.old}", about, header, rows, notes)]


def compare(
    results: ExperimentResult | pd.DataFrame,
    old: str | None = None,
    new: str | None = None,
    *,
    measures: Sequence[str] = (),
    by: str | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Compared:
    """Compare two systems on the same questions.

    results: what `Experiment` gave, or a data frame as its `per_question` (columns system, question, measure, value;
    dataset, corpus, cluster, counts and the column of `by` where they matter), however it was saved or put together.
    old: None is the experiment's baseline. new: None is the other system, if there is one other. measures: empty is
    all. by: category, lang, corpus, split or any column of the frame; a row with a tuple counts in each of its groups.
    seed, resamples: of the randomization test and the bootstrap.
    Raises InputError for an unknown system, measure or column, or where nothing can be compared.

    >>> import pandas as pd
    >>> from recallbench import compare
    >>> values = {"old": [1, 0.5, 0, 0.25], "new": [1, 1, 0.5, 0.2]}
    >>> rows = [
    ...     {"system": system, "question": f"q{place}", "measure": "RR", "value": value}
    ...     for system, found in values.items()
    ...     for place, value in enumerate(found, 1)
    ... ]
    >>> found = compare(pd.DataFrame(rows), "old", "new")
    >>> found.table[["measure", "old", "new", "difference", "better", "worse", "same"]]
      measure     old    new  difference  better  worse  same
    0      RR  0.4375  0.675      0.2375       2      1     1
    >>> found.flips()[["question", "old", "new"]]
      question   old  new
    3       q4  0.25  0.2
    1       q2  0.50  1.0
    2       q3  0.00  0.5
    """
    import pandas as pd

    frame, baseline = _frame(results)
    systems = list(dict.fromkeys(frame["system"]))
    old = old if old is not None else baseline
    if old is None:
        raise InputError(f"say what to compare with: compare(results, OLD, NEW); systems: {', '.join(systems)}")
    if old not in systems:
        raise InputError(f"no system {old!r} in the results; there are: {', '.join(systems)}")
    others = [name for name in systems if name != old]
    if new is None:
        if len(others) != 1:
            raise InputError(f"say which system to compare with {old!r}: {', '.join(others) or 'there is no other'}")
        new = others[0]
    if new not in systems:
        raise InputError(f"no system {new!r} in the results; there are: {', '.join(systems)}")
    if old == new:
        raise InputError(f"{old!r} is compared with itself; name two systems")
    known = list(dict.fromkeys(frame["measure"]))
    for name in measures:
        if name not in known:
            raise InputError(f"no measure {name!r} in the results; there are: {', '.join(known)}")
    wanted = list(measures) or known
    frame = frame[frame["measure"].isin(wanted)]
    questions = _paired(frame, old, new, by)
    rows: list[dict[str, Any]] = []
    for dataset in dict.fromkeys(questions["dataset"]):
        mine = questions[questions["dataset"] == dataset]
        for group, part in _groups(mine, by):
            for name in wanted:
                cells = part[part["measure"] == name]
                if len(cells):
                    rows.append({"dataset": dataset, "group": group, "measure": name, **_row(cells, seed, resamples)})
    if not rows:
        raise InputError(f"{old!r} and {new!r} share no question that counts")
    table = pd.DataFrame(rows)
    table.insert(list(table.columns).index("p") + 1, "p_holm", holm(table["p"].tolist()))
    questions = questions.drop(columns=["group"], errors="ignore")
    if not isinstance(results, pd.DataFrame):
        questions = _with_losses(questions, results.losses, new)
    return Compared(old, new, table, questions)


def _frame(results: ExperimentResult | pd.DataFrame) -> tuple[pd.DataFrame, str | None]:
    """The per-question rows that count, with every column that a comparison reads, and the baseline."""
    import pandas as pd

    if not isinstance(results, pd.DataFrame):
        return results.per_question[results.per_question["counts"]], results.baseline
    for column in _NEEDED:
        if column not in results.columns:
            raise InputError(f"the frame has no column {column!r}; a comparison needs {', '.join(_NEEDED)}")
    frame = results if "counts" not in results.columns else results[results["counts"].astype(bool)]
    for column, default in (("dataset", ""), ("corpus", ""), ("cluster", None)):
        if column not in frame.columns:
            frame = frame.assign(**{column: default})
    return frame, None


def _paired(frame: pd.DataFrame, old: str, new: str, by: str | None) -> pd.DataFrame:
    """One row a question and measure that both systems have: old, new, difference, its cluster and group."""
    column = {"category": "categories"}.get(by, by) if by else None
    if column is not None and column not in frame.columns:
        raise InputError(f"the results have no column {column!r} to group by; there are: {', '.join(frame.columns)}")
    sides = []
    for name in (old, new):
        mine = frame[frame["system"] == name]
        twice = mine[mine.duplicated(_KEYS)]
        if len(twice):
            raise InputError(f"system {name!r} has question {twice.iloc[0]['question']!r} twice in one measure")
        sides.append(mine)
    extra = ["cluster", *([column] if column else [])]
    left = sides[0][[*dict.fromkeys([*_KEYS, *extra]), "value"]].rename(columns={"value": "old"})
    both = left.merge(sides[1][[*_KEYS, "value"]].rename(columns={"value": "new"}), on=_KEYS, how="inner")
    signs = {name: 1.0 if parse_measure(name).higher_is_better else -1.0 for name in set(both["measure"])}
    sign = np.array([signs[name] for name in both["measure"]], np.float64)
    both["difference"] = sign * (both["new"] - both["old"])
    if column is not None:
        both["group"] = both[column]
    return both


def _with_losses(questions: pd.DataFrame, losses: pd.DataFrame, system: str) -> pd.DataFrame:
    """With the column `lost`, where there is a trace."""
    mine = losses[(losses["system"] == system) & (losses["outcome"] != "kept")]
    if not len(losses[losses["system"] == system]):
        return questions
    told = (
        (mine["memory"] + ": " + mine["outcome"])
        .groupby([mine["dataset"], mine["question"]], sort=False)
        .agg(", ".join)
    )
    keys = zip(questions["dataset"], questions["question"], strict=True)
    return questions.assign(lost=[told.get(key, "") for key in keys])


def _groups(frame: pd.DataFrame, by: str | None) -> list[tuple[str, pd.DataFrame]]:
    if by is None:
        return [("", frame)]
    named = [tuple(one) if isinstance(one, (tuple, list, np.ndarray)) else (one,) for one in frame["group"]]
    names = dict.fromkeys(str(one) for each in named for one in each if one is not None and one == one and one != "")
    return [(name, frame[[name in map(str, each) for each in named]]) for name in names]


def _row(cells: pd.DataFrame, seed: int, resamples: int) -> dict[str, Any]:
    clusters = [None if one is None or one != one else str(one) for one in cells["cluster"]]
    got = paired_compare(cells["difference"].to_numpy(np.float64), clusters, seed=seed, resamples=resamples)
    return {
        "old": float(cells["old"].mean()),
        "new": float(cells["new"].mean()),
        "difference": got.interval.mean,
        "low": got.interval.low,
        "high": got.interval.high,
        "p": got.p,
        "better": got.better,
        "worse": got.worse,
        "same": got.same,
        "n": got.interval.n,
        "clusters": got.interval.clusters,
        "detectable": got.detectable,
    }
