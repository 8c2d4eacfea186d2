"""What a soak says at its end: for people, and as the JSON line that benchmarks print."""

from __future__ import annotations

import json

from tests.soak.soak import Soak


def summary(soak: Soak) -> str:
    """All that was counted, what the server took, and the faults."""
    report = soak.report
    lines = [f"{report.seconds / 60:.1f} minutes, seed {soak.seed}", "", *soak.usage.curve(), ""]
    lines += [f"{count:9} {what}" for what, count in sorted(report.counts.items())]
    lines += ["", *report.notes]
    for kind, text in report.faults.items():
        lines += ["", f"FAULT, {kind}: {text}"]
    return "\n".join(lines)


def json_line(soak: Soak) -> str:
    """In the form of `benchmarks/results`: gifts confirmed to players, with how long they took."""
    report = soak.report
    ordered = sorted(report.latencies) or [0.0]
    return json.dumps(
        {
            "workload": "soak",
            "system": "gamedb",
            "parameters": {
                "minutes": round(report.seconds / 60, 1),
                "seed": soak.seed,
                "kills": report.counts["kill"] + report.counts["early kill"],
                "lives": soak.lives,
                "faults": len(report.faults),
            },
            "per_second": round(report.counts["confirmed gifts"] / report.seconds, 1),
            "p50_ms": round(ordered[len(ordered) // 2] * 1000, 1),
            "p99_ms": round(ordered[len(ordered) * 99 // 100] * 1000, 1),
            "peak_mb": round(max((sample.memory_mb for sample in soak.usage.samples), default=0.0)),
        }
    )
