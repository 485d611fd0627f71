"""What a benchmark found, as a table for people or as JSON for programs."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from asrcli.bench import other_seconds
from asrcli.stages import STAGES

if TYPE_CHECKING:
    from asrcli.bench import Machine, Measurement, Round
    from asrcli.peers import PeerMeasurement

_MEANINGS = {
    "audio": "decoding audio, beside the model",
    "voice": "voice detection and cutting, beside the model",
    "features": "features, beside the model",
    "encoder": "encoder",
    "prefill": "prompts",
    "decode": "steps of the decoder",
    "sampling": "choice of ids",
    "other": "other",
}


def render_table(found: Measurement, peer: PeerMeasurement | None = None) -> str:
    """Lines for people: what was measured, and the time by stage."""
    round = found.median
    lines = [
        (found.description, ""),
        ("audio", f"{found.num_files} files, {round.duration:.1f} s, {len(found.rounds)} rounds"),
        ("speed", f"{round.speed:.1f} × real time ({round.seconds:.2f} s)"),
        ("first text", _seconds(round.first_text)),
        ("tokens", f"{round.num_tokens / round.seconds:.0f} a second"),
        ("peak memory", _memory(found.peak_memory)),
        ("machine", _machine(found.machine)),
        ("of the limit", _percent(_share(round))),
        ("", ""),
        ("stage", f"{'seconds':>9}  {'of the run':>10}  {'real-time factor':>16}"),
    ]
    for stage, seconds in _stages(round).items():
        share, factor = seconds / round.seconds, seconds / round.duration
        cells = f"{seconds:9.2f}  {100 * share:9.1f}%  {factor:16.5f}  {_MEANINGS[stage]}"
        lines.append((stage, cells))
    if peer is not None:
        seconds = statistics.median(peer.seconds)
        ratio = seconds / round.seconds
        lines += [
            ("", ""),
            (peer.name, ""),
            ("speed", f"{round.duration / seconds:.1f} × real time ({seconds:.2f} s)"),
            ("peak memory", _memory(peer.peak_memory)),
            ("asr", f"{ratio:.2f} times as fast"),
        ]
    return "".join(f"{name:<13} {value}".rstrip() + "\n" for name, value in lines)


def render_json(found: Measurement, peer: PeerMeasurement | None = None) -> str:
    """One indented object; times in seconds, memory in bytes, what is unknown null."""
    values: dict[str, Any] = {
        "model": found.description,
        "num_files": found.num_files,
        "peak_memory": found.peak_memory,
        "machine": asdict(found.machine),
        "median": _values(found.median),
        "rounds": [_values(round) for round in found.rounds],
    }
    if peer is not None:
        values["peer"] = {
            "name": peer.name,
            "seconds": list(peer.seconds),
            "peak_memory": peer.peak_memory,
            "ratio": statistics.median(peer.seconds) / found.median.seconds,
        }
    return json.dumps(values, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _values(round: Round) -> dict[str, Any]:
    stages = _stages(round)
    return {
        "duration": round.duration,
        "seconds": round.seconds,
        "speed": round.speed,
        "first_text": round.first_text,
        "num_tokens": round.num_tokens,
        "tokens_per_second": round.num_tokens / round.seconds,
        "share_of_limit": _share(round),
        "stages": stages,
        "real_time_factors": {stage: seconds / round.duration for stage, seconds in stages.items()},
    }


def _stages(round: Round) -> dict[str, float]:
    return {**{stage: round.stages[stage] for stage in STAGES}, "other": other_seconds(round)}


def _share(round: Round) -> float | None:
    """How much of the run the machine's limit demands."""
    return None if round.bound is None else round.bound / round.seconds


def _machine(machine: Machine) -> str:
    by_integers = "" if machine.map_ops is None else f"{machine.map_ops / 1e9:.0f} by integers, "
    products = f"{machine.flops / 1e9:.0f} GFLOP/s in products, {by_integers}"
    return f"{products}{machine.bandwidth / 1e9:.1f} GB/s read"


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{100 * share:.0f}%"


def _seconds(seconds: float | None) -> str:
    return "none" if seconds is None else f"after {seconds:.2f} s"


def _memory(num_bytes: int | None) -> str:
    return "unknown" if num_bytes is None else f"{num_bytes / 1e6:.0f} MB"
