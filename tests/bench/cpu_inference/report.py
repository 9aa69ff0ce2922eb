"""The table."""

from tests.bench.cpu_inference.driver import OURS, PEERS

HEADER = ["model", "threads", "batch", OURS, *PEERS, "best peer", "ratio", "aim", "", "largest error"]


def header() -> str:
    rule = ["---" if title in ("model", "best peer", "") else "---:" for title in HEADER]
    return f"| {' | '.join(HEADER)} |\n|{'|'.join(rule)}|"


def milliseconds(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def line(result, clock: str, best: bool) -> str:
    cells = [result.row.name, str(result.threads), str(result.batch)]
    cells += [milliseconds(result.ms(name, clock, best)) if name in result.bursts else "–" for name in (OURS, *PEERS)]
    aim = result.row.aim_at(result.batch)
    peer = result.best_peer(clock, best)
    if peer:
        ratio = result.ratio(clock, best)
        cells += [peer, f"{ratio:.2f}", f"{aim:.2f}", "hit" if ratio <= aim else f"missed by {ratio - aim:.2f}"]
    else:
        cells += ["–", "–", f"{aim:.2f}", "–"]
    error = result.error.get(OURS)
    cells.append("–" if error is None else f"{error:.1e}")
    return f"| {' | '.join(cells)} |"


def failures(result) -> list:
    return [f"{result.row.name}, {result.threads} threads, batch {result.batch}: {name}: {text}"
            for name, text in result.failures.items()]
