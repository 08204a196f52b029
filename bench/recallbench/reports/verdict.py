"""What to ship, how sure that is, and which questions to look at first."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from recallbench.aggregate import clusters_of
from recallbench.reports.figures import bounds, equation, fine, number, percent, spread
from recallbench.reports.standing import Standing, resolutions
from recallbench.reports.words import Both, listed, outcome, say, words
from recallbench.stats import FEW_CLUSTERS, Interval, mean_interval
from recallbench.trust import JUDGED_ENOUGH, Check

GUARDS = ("Leak", "Stale", "Abstain")
"""Measures that may not get worse unseen while the primary one gets better."""
LOOKED_AT = 3


@dataclass(frozen=True, slots=True)
class Figure:
    """One of the numbers that matter. value: as written; label: what it is; detail: interval and test."""

    value: str
    label: Both
    detail: Both


@dataclass(frozen=True, slots=True)
class LookAt:
    """A question to look at. place: in the run; why: what happened to it."""

    place: int
    why: Both


@dataclass(frozen=True, slots=True)
class Verdict:
    """outcome: invalid, better, traded, kept, unproven, clear, tied or alone. sure: sentences, the gravest first."""

    outcome: str
    headline: Both
    figures: tuple[Figure, ...]
    sure: tuple[Both, ...]
    look: tuple[LookAt, ...]


def verdict(held: Standing) -> Verdict:
    """The verdict of a run, from its primary measure; guards and the limits of the set are said beside it."""
    kind, headline = _headline(held)
    return Verdict(kind, headline, tuple(_figures(held)), tuple(_sure(held)), tuple(look_at(held)))


def _headline(held: Standing) -> tuple[str, Both]:
    best, base = held.best, held.baseline
    if not held.evaluation.valid:
        return "invalid", say("v.invalid")
    if base == best:
        return "kept", say("v.kept", best=best)
    if base is not None:
        if not held.to_base[best].significant:
            return "unproven", say("v.unproven", best=best, base=base)
        worse = listed(worse_guards(held))
        if worse.en:
            return "traded", say("v.traded", best=best, base=base, measure=held.primary, worse=worse)
        return "better", say("v.better", best=best, base=base)
    if len(held.order) == 1:
        return "alone", say("v.alone", best=best)
    if len(held.tied) == 1:
        return "tied", say("v.one", best=best, other=held.tied[0])
    return (
        ("tied", say("v.tied", best=best, count=len(held.tied))) if held.tied else ("clear", say("v.clear", best=best))
    )


def _figures(held: Standing) -> list[Figure]:
    best, second = held.best, held.second
    own = held.means[best, held.primary]
    out = [Figure(number(own.mean), say("n.quality", measure=held.primary, best=best), _interval(own))]
    if second is not None:
        family = held.to_base if second == held.baseline else held.to_best
        # `to_best` holds the other system minus the best: turned round, so that both cards read alike.
        turned = second != held.baseline
        one = family[second] if turned else family[best]
        change = _negated(one.interval) if turned else one.interval
        test = say("n.p", p=equation(one.adjusted), family=len(family))
        where = _interval(change, signed=True)
        detail = Both(f"{where.en}; {test.en}", f"{where.zh}；{test.zh}")
        out.append(Figure(number(change.mean, signed=True), say("n.gain", base=second), detail))
    harm = next((name for name in _measures(held) if name.startswith("Leak") and held.means[best, name].n), None)
    if harm is not None:
        mine = held.means[best, harm]
        detail = _interval(mine)
        if second is not None:
            other = say("n.other", base=second, value=number(held.means[second, harm].mean))
            detail = Both(f"{detail.en}; {other.en}", f"{detail.zh}；{other.zh}")
        out.append(Figure(number(mine.mean), say("n.harm", measure=harm), detail))
    else:
        found = resolutions(held)[0]
        if found.detectable is not None:
            detail = say("n.power", measure=held.primary, pairs=found.differ)
            out.append(Figure(fine(found.detectable[0]), say("n.finds"), detail))
    return out


def _measures(held: Standing) -> list[str]:
    return [str(measure) for measure in held.evaluation.measures]


def _negated(interval: Interval) -> Interval:
    return Interval(-interval.mean, -interval.high, -interval.low, interval.n, interval.clusters)


def _interval(interval: Interval, signed: bool = False) -> Both:
    return say("n.interval", low=number(interval.low, signed=signed), high=number(interval.high, signed=signed))


def _sure(held: Standing) -> list[Both]:
    best, own = held.best, held.means[held.best, held.primary]
    out = [_error(one) for one in held.evaluation.checks if one.level == "error"]
    out += _guards(held)
    if held.tied:
        out.append(say("s.tied", best=best, n=own.n, names=listed(held.tied)))
        out += _safer(held)
    elif len(held.order) > 1:
        worst = max(one.adjusted for one in held.to_best.values())
        out.append(say("s.ahead", best=best, p=equation(worst)))
    found = resolutions(held)[0].detectable
    if found is not None:
        out.append(say("s.finds", measure=held.primary, low=fine(found[1]), high=fine(found[2])))
    out += _held_out(held)
    if "Judged@5" in _measures(held):
        share = held.means[best, "Judged@5"].mean
        if share < JUDGED_ENOUGH:
            out.append(say("s.judged", best=best, share=percent(share)))
    if 0 < own.clusters < FEW_CLUSTERS:
        out.append(say("s.few", clusters=own.clusters, least=FEW_CLUSTERS))
    return out


def worse_guards(held: Standing) -> list[str]:
    """Of the measures in GUARDS, those in which the best system is worse than the baseline by its 95 % interval."""
    base = held.baseline
    if base is None or base == held.best:
        return []
    changes = {name: held.to_reference[held.best, name] for name in _measures(held) if name.startswith(GUARDS)}
    return [name for name, change in changes.items() if change.n and change.high < 0]


def _error(check: Check) -> Both:
    """What made the run invalid; the message of a check is English."""
    meaning = words().get(f"check.{check.name}")
    return Both(check.message, check.message if meaning is None else f"{meaning.zh}：{check.message}")


def _guards(held: Standing) -> list[Both]:
    out = []
    for name in worse_guards(held):
        now, then = (number(held.means[system, name].mean) for system in (held.best, held.reference))
        better = held.to_reference[held.best, name]
        drop = replace(better, mean=-better.mean, low=-better.high, high=-better.low)
        out.append(say("s.guard", measure=name, base=held.reference, now=now, then=then, drop=spread(drop)))
    return out


def _safer(held: Standing) -> list[Both]:
    """Of the systems that quality does not tell apart, the one that leaks least."""
    name = next((one for one in _measures(held) if one.startswith("Leak")), None)
    if name is None or not held.means[held.best, name].n:
        return []
    least = min((held.best, *held.tied), key=lambda system: held.means[system, name].mean)
    mine, other = held.means[least, name].mean, held.means[held.best, name].mean
    if mine >= other:
        return []
    return [say("s.safer", name=least, measure=name, value=number(mine), other=number(other))]


def _held_out(held: Standing) -> list[Both]:
    """The best on dev, as it does on test; or a word on choosing and judging on the same questions."""
    evaluation = held.evaluation
    split = np.array([question.split or "" for question in evaluation.labelled.questions])
    count = len(held.order)
    if count < 2:
        return []
    dev, test = split == "dev", split == "test"
    counts, values = evaluation.counts[:, 0], evaluation.values[:, 0]
    if not ((counts & dev).any(axis=1).all() and (counts & test).any(axis=1).all()):
        return [say("s.same", count=count)]
    sign = 1.0 if evaluation.measures[0].higher_is_better else -1.0
    chosen = int(np.argmax([sign * v[c & dev].mean() for v, c in zip(values, counts, strict=True)]))
    places, clusters = np.flatnonzero(counts[chosen] & test), clusters_of(evaluation)
    interval = mean_interval(values[chosen, places], [clusters[place] for place in places])
    return [
        say(
            "s.held",
            best=evaluation.systems[chosen],
            measure=held.primary,
            value=number(interval.mean),
            interval=bounds(interval),
            n=interval.n,
        )
    ]


def look_at(held: Standing, most: int = LOOKED_AT) -> list[LookAt]:
    """The questions where the best system falls most against the baseline, then those that most others answer better.

    Equals stay in the order of the set.
    """
    evaluation = held.evaluation
    sign = 1.0 if evaluation.measures[0].higher_is_better else -1.0
    values = sign * evaluation.values[:, 0]
    best, base = (evaluation.systems.index(name) for name in (held.best, held.reference))
    counts = evaluation.counts[:, 0].all(axis=0)
    drops = [
        (values[base, q] - values[best, q], q)
        for q in np.flatnonzero(counts).tolist()
        if values[best, q] < values[base, q]
    ]
    out = [
        LookAt(q, _because(held, q, _drop(held, q))) for _, q in sorted(drops, key=lambda one: (-one[0], one[1]))[:most]
    ]
    seen, others = {one.place for one in out}, np.delete(values, best, axis=0)
    missed = [
        (float((others[:, q] - values[best, q]).clip(0).sum()), q)
        for q in np.flatnonzero(counts).tolist()
        if q not in seen and len(others) and others[:, q].max() > values[best, q]
    ]
    for _, q in sorted(missed, key=lambda one: (-one[0], one[1]))[: most - len(out)]:
        out.append(LookAt(q, _because(held, q, _missed(held, q, others))))
    return out


def _drop(held: Standing, q: int) -> Both:
    now, then = (
        number(float(held.evaluation.values[held.evaluation.systems.index(name), 0, q]))
        for name in (held.best, held.reference)
    )
    return say("l.drop", best=held.best, base=held.reference, now=now, then=then)


def _missed(held: Standing, q: int, others: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> Both:
    evaluation = held.evaluation
    sign = 1.0 if evaluation.measures[0].higher_is_better else -1.0
    now = float(evaluation.values[evaluation.systems.index(held.best), 0, q])
    better = int((others[:, q] > sign * now).sum())
    top = number(sign * float(others[:, q].max()))
    return say("l.missed", best=held.best, now=number(now), count=better, others=len(others), top=top)


def _because(held: Standing, q: int, what: Both) -> Both:
    """What happened, and how the best system lost a relevant memory."""
    run = held.evaluation.runs[held.evaluation.systems.index(held.best)]
    lost = [name for name in (run.losses[q].values() if run.losses else ()) if name != "kept"]
    if not lost:
        return what
    tail = say("l.lost", outcome=outcome(lost[0]))
    return Both(what.en + tail.en, what.zh + tail.zh)
