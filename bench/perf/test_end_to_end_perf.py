"""Wall time and peak memory of the command: `--help` against `import numpy`; LoCoMo, first and cached.

RECALLBENCH_DATA=FOLDER python -m pytest --benchmark-only -s bench/perf/test_end_to_end_perf.py
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest


def seconds(*arguments: str, **environment: str) -> tuple[float, float]:
    """(wall seconds, peak resident megabytes) of a Python process of its own."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *arguments], env={**os.environ, **environment}, stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def test_help_against_import_numpy(benchmark: Any) -> None:
    peer = min(seconds("-c", "import numpy")[0] for _ in range(7))
    benchmark.pedantic(lambda: seconds("-m", "recallbench", "--help"), rounds=7, warmup_rounds=1)
    ratio = benchmark.stats.stats.min / peer
    benchmark.extra_info.update(peer="import numpy", times_as_long=ratio)
    print(f"\nrecallbench --help: {ratio:.2f} times as long as import numpy")


def test_locomo_first_and_cached(benchmark: Any, tmp_path: Path) -> None:
    data = os.environ.get("RECALLBENCH_DATA")
    if not data:
        pytest.skip("RECALLBENCH_DATA is not set: LoCoMo is not part of the project")
    arguments = ["-m", "recallbench", "run", "--dataset", "locomo", "--data", data, "--system", "presets:search"]
    arguments += ["--quiet", "--out", str(tmp_path / "out")]
    first, first_peak = seconds(*arguments, RECALLBENCH_CACHE=str(tmp_path / "cache"))
    peaks: list[float] = []

    def cached() -> None:
        peaks.append(seconds(*arguments, RECALLBENCH_CACHE=str(tmp_path / "cache"))[1])

    benchmark.pedantic(cached, rounds=2)
    again = benchmark.stats.stats.min
    benchmark.extra_info.update(first_seconds=first, first_peak_mb=first_peak, cached_peak_mb=max(peaks))
    print(
        f"\nLoCoMo, 13 search presets: first {first:.1f} s and {first_peak:.0f} MB, "
        f"cached {again:.1f} s and {max(peaks):.0f} MB (cached over first: {again / first:.2f})"
    )
