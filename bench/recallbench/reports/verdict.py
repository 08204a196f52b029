"""What to ship, how sure that is, and which questions to look at first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recallbench.evaluation.aggregate import clusters_of
from recallbench.evaluation.trust import JUDGED_ENOUGH, Check
from recallbench.reports.look import LookAt, look_at
from recallbench.reports.standing import Standing, resolutions
from recallbench.reports.words import Both, listed, say, words
from recallbench.statistics.intervals import FEW_CLUSTERS, Interval, mean_interval
from recallbench.text.numbers import bounds, equation, fine, number, percent, spread


@dataclass(frozen=True, slots=True)
class Figure:
    """One of the numbers that matter. value: as written; label: what it is; detail: interval and test."""

    value: str
    label: Both
    detail: Both


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
    if kind == "invalid":  # no figure of such a run is one to go by: what is wrong, and where
        errors = tuple(_error(one) for one in held.evaluation.checks if one.level == "error")
        return Verdict(kind, headline, (), errors, tuple(look_at(held)))
    return Verdict(kind, headline, tuple(_figures(held)), tuple(_sure(held)), tuple(look_at(held)))


def _headline(held: Standing) -> tuple[str, Both]:
    best, base, pick = held.best, held.baseline, held.pick
    if not held.evaluation.valid:
        return "invalid", say("v.invalid")
    if base is not None and held.proven:
        worse = held.harms(pick)
        if not worse:
            return "better", say("v.better", best=pick, base=base)
        traded = say("v.traded", best=pick, base=base, measure=held.primary, worse=listed(worse))
        return "traded", traded if held.spared is None else _joined(traded, say("v.traded.spared", name=held.spared))
    if base is not None and held.spared is not None:
        less = listed(held.relief[held.spared])
        return "unproven", say("v.spared", name=held.spared, base=base, measure=held.primary, less=less)
    if base is not None:
        return (
            ("kept", say("v.kept", best=best))
            if base == best
            else ("unproven", say("v.unproven", best=best, base=base))
        )
    if len(held.order) == 1:
        return "alone", say("v.alone", best=best)
    if len(held.tied) == 1:
        return "tied", say("v.one", best=best, other=held.tied[0])
    return (
        ("tied", say("v.tied", best=best, count=len(held.tied))) if held.tied else ("clear", say("v.clear", best=best))
    )


def _figures(held: Standing) -> list[Figure]:
    best, second = held.pick, held.second
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
    # Where less harm is why it is picked, the harm that it spares; else leaks.
    spared = held.relief[best] if best == held.spared and best not in held.proven else ()
    leaks = (name for name in _measures(held) if name.startswith("Leak") and held.means[best, name].n)
    harm = next(iter(spared), None) or next(leaks, None)
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


def _joined(first: Both, then: Both) -> Both:
    """Two sentences; Chinese ones stand without a space."""
    return Both(f"{first.en} {then.en}", f"{first.zh}{then.zh}")


def _negated(interval: Interval) -> Interval:
    return Interval(-interval.mean, -interval.high, -interval.low, interval.n, interval.clusters)


def _interval(interval: Interval, signed: bool = False) -> Both:
    return say("n.interval", low=number(interval.low, signed=signed), high=number(interval.high, signed=signed))


def _sure(held: Standing) -> list[Both]:
    best, own = held.best, held.means[held.best, held.primary]
    out = _passed_over(held) + _guards(held) + _spared(held)
    if held.tied:
        out.append(say("s.tied", best=best, n=own.n, names=listed(held.tied)))
        out += [] if held.spared else _safer(held)
    elif len(held.order) > 1:
        worst = max(one.adjusted for one in held.to_best.values())
        out.append(say("s.ahead", best=best, p=equation(worst)))
    found = resolutions(held)[0].detectable
    if found is not None:
        out.append(say("s.finds", measure=held.primary, median=fine(found[0]), high=fine(found[2])))
    out += _held_out(held)
    if "Judged@5" in _measures(held):
        share = held.means[held.pick, "Judged@5"].mean
        if share < JUDGED_ENOUGH:
            out.append(say("s.judged", best=held.pick, share=percent(share)))
    if 0 < own.clusters < FEW_CLUSTERS:
        out.append(say("s.few", clusters=own.clusters, least=FEW_CLUSTERS))
    return out


def _error(check: Check) -> Both:
    """What made the run invalid; the message of a check is English."""
    meaning = words().get(f"check.{check.name}")
    message = f"{check.system}: {check.message}" if check.system else check.message
    return Both(message, message if meaning is None else f"{meaning.zh}：{message}")


def _passed_over(held: Standing) -> list[Both]:
    """Why the verdict is not about the system with the best mean."""
    best, base = held.best, held.baseline
    if held.pick == best or base is None:
        return []
    value = number(held.means[best, held.primary].mean)
    if best == base:
        return []
    if best not in held.proven:
        change = held.to_base.get(best)
        p = equation(1.0 if change is None else change.adjusted)
        return [say("s.passed.unproven", best=best, measure=held.primary, value=value, base=base, p=p)]
    worse = listed(held.harms(best))
    return [say("s.passed.harm", best=best, measure=held.primary, value=value, base=base, worse=worse)]


def _guards(held: Standing) -> list[Both]:
    out = []
    for name in held.harms(held.pick):
        now, then = (number(held.means[system, name].mean) for system in (held.pick, held.reference))
        by = _size(held, held.pick, name)
        out.append(say("s.guard", measure=name, best=held.pick, base=held.reference, now=now, then=then, by=by))
    return out


def _spared(held: Standing) -> list[Both]:
    """The figures of the system that harms less at no loss that is shown."""
    name = held.spared
    if name is None or name in held.proven:
        return []
    change = spread(held.to_reference[name, held.primary], signed=True)
    less = [
        say("s.spared.less", measure=one, now=number(held.means[name, one].mean), then=_then(held, one))
        for one in held.relief[name]
    ]
    harms = Both(", ".join(one.en for one in less), "、".join(one.zh for one in less))
    return [say("s.spared", name=name, base=held.reference, measure=held.primary, change=change, harms=harms)]


def _then(held: Standing, measure: str) -> str:
    return number(held.means[held.reference, measure].mean)


def _size(held: Standing, system: str, measure: str) -> str:
    """How much two systems differ, without a sign: what is better stands in the sentence."""
    change = held.to_reference[system, measure]
    return spread(_negated(change) if change.mean < 0 else change)


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
    best = evaluation.systems[chosen]
    out = say(
        "s.held", best=best, measure=held.primary, value=number(interval.mean), interval=bounds(interval), n=interval.n
    )
    if best == held.pick:
        return [out]
    # The test questions are others: their figure says something only beside that of the system the verdict is about.
    at = evaluation.systems.index(held.pick)
    there = np.flatnonzero(counts[at] & test)
    own = number(mean_interval(values[at, there], [clusters[place] for place in there]).mean)
    return [_joined(out, say("s.held.pick", pick=held.pick, value=own))]
