"""python -m benchmarks.synthesis evaluate|peers|bootstrap|report: measure synthetic tables.

evaluate   ours, fresh tables; prints means, and stores every run
peers      other libraries, one table after the other, each in its own environment; stores every run
bootstrap  true rows drawn with replacement: what the measures are at best
sdmetrics  the quality score of SDV, of ours beside MST and a bootstrap; prints a table
report     writes the stored results into docs/figures.md
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from statistics import fmean

from benchmarks.measure import run_in_child
from benchmarks.synthesis import mst, ours, peers, report, results
from benchmarks.synthesis.evaluation import bootstrap, evaluate
from benchmarks.synthesis.tables import HELD_OUT, TABLES, Table
from tidegate.arrays import Ints

EPSILONS = (0.25, 1.0, 4.0)


def evaluate_ours(options: argparse.Namespace) -> None:
    """Measure ours on each table; one process per run, so that its memory is its own."""
    print(results.heading())
    for name in options.table:
        table = TABLES[name]()
        for epsilon in options.epsilon:
            for mode in options.mode:
                runs = []
                for seed in range(1, options.seeds + 1):
                    run = run_in_child(ours.synthesize, name, epsilon, mode, seed)["value"]
                    runs.append({**evaluate(table, run.pop("codes"), seed=seed), **run})
                key = results.Key(name, epsilon, f"{runs[0]['model']} {mode}")
                print(results.line(key, runs), flush=True)
                if not options.dry:
                    results.store(key, runs, note=results.PROMISES[mode])


def evaluate_bootstrap(options: argparse.Namespace) -> None:
    print(results.heading())
    for name in options.table:
        table = TABLES[name]()
        runs = [evaluate(table, bootstrap(table, seed=seed), seed=seed) for seed in range(1, options.seeds + 1)]
        key = results.Key(name, 0.0, "bootstrap")
        print(results.line(key, runs), flush=True)
        if not options.dry:
            results.store(key, runs, note="no noise, no promise")


def evaluate_peers(options: argparse.Namespace) -> None:
    """Create and measure tables of other libraries; a row that is stored is not created again."""
    print(results.heading())
    stored = {(row["table"], row["epsilon"], row["method"]) for row in results.load()}
    for model, cells in options.model:
        if model == "tree":
            measure_trees(options, stored)
            continue
        library = "datasynthesizer" if model == "DataSynthesizer" else "dpmm"
        for epsilon in options.epsilon:
            for name in options.table:
                works = [peers.Work(library, model, cells, epsilon, seed) for seed in range(1, options.seeds + 1)]
                key = results.Key(name, epsilon, works[0].method)
                if key not in stored:
                    measure_peer(key, works, options)


def measure_trees(options: argparse.Namespace, stored: set[tuple[str, float, str]]) -> None:
    """Measure our own MST, in this process: its memory is not measured."""
    for name in options.table:
        table = TABLES[name]()
        for epsilon in options.epsilon:
            key, runs = results.Key(name, epsilon, "MST (ours), public cells"), []
            if key in stored:
                continue
            for seed in range(1, options.seeds + 1):
                run = mst.synthesize(name, epsilon, seed)
                runs.append({**evaluate(table, run.pop("codes"), seed=seed), **run})
            print(results.line(key, runs), flush=True)
            if not options.dry:
                results.store(key, runs, note="(epsilon, 1e-5), one row replaced, Gaussian noise (floating point)")


def measure_peer(key: results.Key, works: list[peers.Work], options: argparse.Namespace) -> None:
    """Create and measure one row's tables; the first problem ends the row."""
    table, runs, problem = TABLES[key.table](), list[dict[str, object]](), ""
    for work in works:
        run = peers.synthesize(table, work, limit=60 * options.minutes)
        problem = run.pop("problem", "")
        if problem:
            break
        runs.append({**evaluate(table, run.pop("codes"), seed=work.seed), **run})
    print(results.line(key, runs), problem, flush=True)
    if not options.dry:
        results.store(key, runs, note=peers.PROMISES[works[0].peer], **({"problem": problem} if problem else {}))


def score_by_sdmetrics(options: argparse.Namespace) -> None:
    """Print the two parts of SDV's quality score, means over the seeds. Columns that follow from others are left out."""
    print("| table | epsilon | method | shapes of columns | trends of pairs |\n|---|--:|---|--:|--:|")
    for name in options.table:
        table = TABLES[name]()
        methods: dict[tuple[float, str], Callable[[int], Ints]] = {(0.0, "bootstrap"): partial(bootstrap_of, table)}
        for epsilon in options.epsilon:
            for mode in options.mode:
                methods[epsilon, f"**forest/2 {mode}**"] = partial(codes_of_ours, name, epsilon, mode)
            methods[epsilon, "MST (ours), public cells"] = partial(codes_of_mst, name, epsilon)
        for (epsilon, method), make in methods.items():
            scores = [peers.sdmetrics(table, make(seed)) for seed in range(1, options.seeds + 1)]
            shapes, trends = (fmean(score[part] for score in scores) for part in ("shapes", "trends"))
            print(
                f"| {name} | {f'{epsilon:g}' if epsilon else ''} | {method} | {shapes:.4f} | {trends:.4f} |", flush=True
            )


def bootstrap_of(table: Table, seed: int) -> Ints:
    return bootstrap(table, seed=seed)


def codes_of_ours(name: str, epsilon: float, mode: str, seed: int) -> Ints:
    return ours.synthesize(name, epsilon, mode, seed)["codes"]  # type: ignore[no-any-return]


def codes_of_mst(name: str, epsilon: float, seed: int) -> Ints:
    return mst.synthesize(name, epsilon, seed)["codes"]  # type: ignore[no-any-return]


def peer_model(text: str) -> tuple[str, str]:
    """Return model and cells of an option such as MST or MST:public."""
    model, _, cells = text.partition(":")
    return model, cells or "native"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.synthesis")
    parser.add_argument("command", choices=("evaluate", "peers", "bootstrap", "sdmetrics", "report"))
    parser.add_argument(
        "--table", nargs="+", choices=list(TABLES), default=[name for name in TABLES if name != HELD_OUT]
    )
    parser.add_argument("--epsilon", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--mode", nargs="+", choices=ours.MODES, default=list(ours.MODES))
    parser.add_argument("--seeds", type=int, default=3, help="the number of runs")
    parser.add_argument("--model", nargs="+", type=peer_model, default=[peer_model("MST:public")], help="of peers")
    parser.add_argument("--minutes", type=float, default=30, help="limit of one table of a peer")
    parser.add_argument("--dry", action="store_true", help="store nothing")
    options = parser.parse_args()
    if options.command == "report":
        print(report.write())
        return
    commands = {
        "evaluate": evaluate_ours,
        "peers": evaluate_peers,
        "bootstrap": evaluate_bootstrap,
        "sdmetrics": score_by_sdmetrics,
    }
    commands[options.command](options)


if __name__ == "__main__":
    main()
