"""The table of results."""

from tests.bench.cpu_inference.driver import OURS, PEERS

HEADER = ["model", "threads", "batch", OURS, *PEERS, "best peer", "ratio", "aim", "", "at peak", "of peak", "largest error"]


def header(also: list) -> str:
    titles = HEADER + [title for precision in also for title in (precision, f"{precision} / f32", "its error")]
    rule = ["---" if title in ("model", "best peer", "") else "---:" for title in titles]
    return f"| {' | '.join(titles)} |\n|{'|'.join(rule)}|"


def milliseconds(value: float) -> str:
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def error(result, name: str) -> str:
    return f"{result.error[name]:.1e}" if name in result.error else "–"


def line(result, clock: str, best: bool, also: list) -> str:
    cells = [result.row.name, str(result.threads), str(result.batch)]
    cells += [milliseconds(result.ms(name, clock, best)) if name in result.bursts else "–" for name in (OURS, *PEERS)]
    aim = result.row.aim_at(result.batch)
    peer = result.best_peer(clock, best)
    if peer:
        ratio = result.ratio(OURS, peer, clock, best)
        cells += [peer, f"{ratio:.2f}", f"{aim:.2f}", "hit" if ratio <= aim else f"missed by {ratio - aim:.2f}"]
    else:
        cells += ["–", "–", f"{aim:.2f}", "–"]
    if peer and result.speed:
        shortest = result.shortest_ms()
        cells += [f"{shortest / result.ms(peer, clock, best):.2f}", f"{100 * shortest / result.ms(OURS, clock, best):.0f} %"]
    else:
        cells += ["–", "–"]
    cells.append(error(result, OURS))
    for name in (f"{OURS} {precision}" for precision in also):
        if name in result.bursts and OURS in result.bursts:
            cells += [milliseconds(result.ms(name, clock, best)), f"{result.ratio(name, OURS, clock, best):.2f}"]
        else:
            cells += ["–", "–"]
        cells.append(error(result, name))
    return f"| {' | '.join(cells)} |"


def remarks(result, clock: str, best: bool) -> list:
    """Failures, and for a missed target where the time is spent."""
    place = f"{result.row.name}, {result.threads} thread{'s' * (result.threads > 1)}, batch {result.batch}"
    out = [f"- {place}: {name} failed: {reason}" for name, reason in result.failures.items()]
    peer = result.best_peer(clock, best)
    if peer and result.speed and result.ratio(OURS, peer, clock, best) > result.row.aim_at(result.batch):
        calls = [f"{op['name']} {100 * op['share']:.0f} % at {op['gflops']:.0f} GFLOP/s, {op['gbs']:.0f} GB/s"
                 for op in result.speed["ops"][:4]]
        out.append(f"- {place}: {'; '.join(calls)}")
    return out
