#!/usr/bin/env python3
# Recurrent layers against their peers: every contestant is a process that makes a training step when it is told to, so
# that all are timed in turn, in the same minute, beside what the core can do at most. See README.md.
# SPDX-License-Identifier: MIT
import argparse
import array
import collections
import datetime
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
Case = collections.namedtuple("Case", "cell steps batch hidden layers")
SHAPES = [(100, 32, 128, 1), (256, 64, 512, 1), (1000, 16, 256, 2), (10000, 1, 64, 1), (20000, 8, 128, 1)]
CELLS = ["lstm", "gru", "lstm_norm"]
# Of the LSTM, one thread: share of the limit, and times of the peers over ours.
Floor = collections.namedtuple("Floor", "share onednn torch")
FLOORS = dict(zip(SHAPES, [Floor(0.84, 1.08, 1.8), Floor(0.87, 0.98, 1.25), Floor(0.87, 1.04, 1.75),
                           Floor(0.80, 1.6, 50.0), Floor(0.84, 1.12, 5.0)]))
RECOMPUTE = [(10000, 1, 64, 1), (10000, 8, 128, 1)]
MIB = 1 << 20


def gates(cell):
    return 3 if cell == "gru" else 4


def flops(case, input_gradient=True):
    """Of all products: forward, to inputs and states, to weights. Inputs are as wide as states."""
    products = 6 * case.layers - (0 if input_gradient else 1)
    return products * gates(case.cell) * case.hidden * 2 * case.hidden * case.batch * case.steps


def title(case):
    return f"{case.cell} {case.steps}x{case.batch}x{case.hidden}x{case.layers}"


def spread(values):
    q1, median, q3 = statistics.quantiles(values, n=4, method="inclusive")
    return {"median": median, "min": min(values), "q1": q1, "q3": q3, "max": max(values), "n": len(values)}


class Contestant:
    """A process that makes steps of a case. `who` names it in a group."""

    def __init__(self, who, command, case, threads, cores, settings=None, environment=None):
        self.who, self.case, self.threads, self.settings = who, case, threads, settings or {}
        words = {**case._asdict(), "threads": threads, **self.settings}
        pools = {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
        self.process = subprocess.Popen(
            [*command, *(f"{key}={value}" for key, value in words.items())], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env={**os.environ, **pools, **(environment or {})},
            preexec_fn=lambda: os.sched_setaffinity(0, cores[:threads]))
        self.version = self.answer()["version"]
        self.times, self.rates = [], []

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.who} ended with {self.process.wait()} at {title(self.case)}")
        return json.loads(line)

    def ask(self, *words):
        self.process.stdin.write(" ".join(words) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Bench:
    def __init__(self, options):
        self.options = options
        self.met, self.mode, self.where = True, "", ""
        self.build = pathlib.Path(options.build).resolve()
        self.out = open(options.json, "w") if options.json else None
        self.cores = [int(core) for core in options.cores.split(",")]
        self.pythons = []
        for python in options.python or ["/usr/bin/python3"]:
            asked = shutil.which(python) and subprocess.run(
                [python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
            if asked and asked.returncode == 0:
                self.pythons.append(("torch-" + ".".join(asked.stdout.split(".")[:2]), python))
            else:
                print(f"skipped: PyTorch, which {python} does not import")
        if not self.program("ours").exists():
            sys.exit(f"no {self.program('ours')}: build the bench first, or give the folder in which it was built")
        if not self.program("onednn").exists():
            print("skipped: oneDNN, which was not found when the bench was configured")

    def program(self, name):
        return self.build / f"bench_recurrent_{name}"

    def claim(self, holds, what):
        if not holds:
            print(f"NOT MET: {self.where}: {what}")
        self.met = self.met and holds

    def write(self, row):
        if self.out:
            print(json.dumps(row), file=self.out, flush=True)

    def machine(self):
        with open("/proc/cpuinfo") as lines:
            cpu = dict(line.split(":", 1) for line in lines if ":" in line)
        cpu = {key.strip(): value.strip() for key, value in cpu.items()}
        row = {"machine": f"{cpu['model name']} (family {cpu['cpu family']}, model {cpu['model']})",
               "date": datetime.date.today().isoformat(), "rounds": self.options.rounds}
        for level in (0, 2, 3):
            size = pathlib.Path(f"/sys/devices/system/cpu/cpu0/cache/index{level}/size")
            if size.exists():
                row[f"cache_{level}"] = size.read_text().strip()
        limit = self.limit(Case("lstm", *SHAPES[0]), 1)
        row["vectors"] = limit.version
        limit.end()
        print(", ".join(f"{key} {value}" for key, value in row.items()))
        self.write(row)

    def limit(self, case, threads):
        return Contestant("limit", [self.program("limit")], case, threads, self.cores)

    def ours(self, case, threads, who="ours", **settings):
        chunk = self.options.chunk or (128 if case.batch == 1 else 32)  # from there on longer ones are no faster
        # Threads are its own: none of BLAS beside them.
        return Contestant(who, [self.program("ours")], case, threads, self.cores, {"chunk": chunk, **settings},
                          {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"})

    def onednn(self, case, threads):
        if not self.program("onednn").exists() or case.cell == "lstm_norm":
            return []
        return [Contestant("onednn", [self.program("onednn")], case, threads, self.cores)]

    def torch(self, case, threads, suffix="", **settings):
        if case.cell == "lstm_norm":
            return []
        return [Contestant(who + suffix, [python, HERE / "peer_torch.py"], case, threads, self.cores, settings,
                           {"OMP_WAIT_POLICY": "PASSIVE"}) for who, python in self.pythons]

    def peers(self, case, threads):
        return [*self.onednn(case, threads), *self.torch(case, threads)]

    def check(self):
        """Loss and gradients of a small case: the same work, or times say nothing."""
        for cell in ("lstm", "gru"):
            case = Case(cell, 7, 3, 24, 2)
            contestants = [self.ours(case, 1, chunk=3), self.ours(case, 1, "layers", chunk=3, by="layers"),
                           *self.peers(case, 1)]
            numbers = []
            with tempfile.TemporaryDirectory() as folder:
                for contestant in contestants:
                    path = os.path.join(folder, contestant.who)
                    contestant.ask("step")
                    contestant.ask("step")  # nothing is left of the first
                    contestant.ask("gradients", path)
                    contestant.end()
                    values = array.array("f")
                    values.frombytes(pathlib.Path(path).read_bytes())
                    numbers.append(values)
            g, h = gates(cell), case.hidden
            parts = [1, *(case.layers * [g * h * h, g * h * h, g * h, g * h]), case.steps * case.batch * h]
            for contestant, values in zip(contestants[1:], numbers[1:]):
                assert len(values) == len(numbers[0]) == sum(parts)
                first, worst = 0, 0.0
                for size in parts:
                    a, b = (each[first : first + size] for each in (numbers[0], values))
                    worst = max(worst, max(abs(x - y) for x, y in zip(a, b)) / max(map(abs, b)))
                    first += size
                self.where = title(case)
                print(f"{cell}: loss and gradients are those of {contestant.who} to {worst:.1e}")
                self.claim(worst <= 1e-4, f"gradients of {contestant.who} within 1e-4")

    def time(self, contestants, clock, before=0):
        """Steps of all in turn, the first turn not counted, nor so many `before` in every turn: where threads have slept
        for long, the system wakes them on one core and parts them some milliseconds later."""
        for k in range(-1, self.options.rounds):
            for contestant in contestants:
                for _ in range(0 if contestant.who == "limit" else before):
                    contestant.ask("step")
                taken = contestant.ask("step")[clock]
                if k < 0:
                    continue
                if contestant.who == "limit":
                    contestant.rates.append(contestant.ask("facts"))
                else:
                    contestant.times.append(taken)

    def report(self, contestants, clock, against):
        """Rows of a group; by name."""
        limit, case = contestants[0], contestants[0].case
        rows, self.where = {}, title(case)
        registers, matrix = (
            statistics.median(rate[key] for rate in limit.rates) / 1e9 for key in ("registers", "matrix"))
        print(f"\n{title(case)} (cell, steps x batch x hidden x layers), {clock} time; limit {registers:.1f} GFLOP/s"
              + (f", of products with one vector {matrix:.1f}" if case.batch == 1 else ""))
        for c in contestants[1:]:
            work = flops(case, c.settings.get("by") != "trainer")  # a trainer has no gradient of the inputs
            # Of one sequence, two of six products of a layer have one vector and read their matrix anew for it.
            alone = flops(case) / 3 if case.batch == 1 else 0
            least = [alone / rate["matrix"] + (work - alone) / rate["registers"] for rate in limit.rates]
            row = {"mode": self.mode, "case": title(case), "who": c.who, "version": c.version, "threads": c.threads,
                   "clock": clock, "settings": c.settings, "ns": spread([t / case.steps * 1e9 for t in c.times])}
            row["gflops"] = work / statistics.median(c.times) / 1e9
            row["share"] = spread([a / b for a, b in zip(least, c.times)])
            row.update(c.ask("memory"))
            ns = row["ns"]
            line = (f"  {c.who + ' ' + c.version:<36}{c.threads} thread{'s' if c.threads > 1 else ' '}"
                    f"{ns['median']:12,.0f} ns a step"
                    f" ({ns['min']:,.0f} .. {ns['q1']:,.0f} .. {ns['q3']:,.0f} .. {ns['max']:,.0f})"
                    f"{row['gflops']:7.1f} GFLOP/s, {row['share']['median']:.3f} of the limit,"
                    f" {row['peak'] / MIB:,.0f} MiB, {row['held'] / MIB:,.0f} of the step's")
            if c is not against:
                row["over_" + against.who] = spread([a / b for a, b in zip(c.times, against.times)])
                ratio = row["over_" + against.who]
                line += f"; {ratio['median']:.2f} times {against.who} ({ratio['q1']:.2f} .. {ratio['q3']:.2f})"
            print(line, flush=True)
            rows[c.who] = row
        return rows

    def one_thread(self):
        shares = {}
        for shape in self.options.shapes:
            for cell in self.options.cells:
                case = Case(cell, *shape)
                ours = self.ours(case, 1)
                contestants = [self.limit(case, 1), ours, *self.peers(case, 1)]
                self.time(contestants, "processor")
                rows = self.report(contestants, "processor", ours)
                for c in contestants:
                    c.end()
                for row in rows.values():
                    self.write(row)
                share = rows["ours"]["share"]["median"]
                shares[cell] = share
                if cell == "lstm":
                    floor = FLOORS[shape]
                    self.claim(share >= floor.share, f"{share:.3f} of the limit, floor {floor.share}")
                    for who, wanted in (("onednn", floor.onednn), ("torch-1.13", floor.torch)):
                        if who in rows:
                            ratio = rows[who]["over_ours"]["median"]
                            self.claim(ratio >= wanted, f"{ratio:.2f} times as fast as {who}, floor {wanted}")
                elif "lstm" in shares:
                    self.claim(share >= shares["lstm"] - 0.05,
                               f"{share:.3f} of the limit, floor the LSTM's {shares['lstm']:.3f} less 0.05")
                if "onednn" in rows:
                    self.claim(rows["ours"]["held"] < rows["onednn"]["held"], "less memory than oneDNN's stored run")

    def two_threads(self):
        for shape in self.options.shapes:
            for cell in self.options.cells:
                case = Case(cell, *shape)
                one = self.ours(case, 1, "trainer, one", by="trainer")
                two = self.ours(case, 2, "trainer", by="trainer")
                ours = self.ours(case, 2)
                contestants = [self.limit(case, 2), ours, *self.peers(case, 2), one, two]
                self.time(contestants, "wall", 3 if case.steps <= 1000 else 0)
                rows = self.report(contestants, "wall", ours)
                for c in contestants:
                    c.end()
                gain = spread([a / b for a, b in zip(one.times, two.times)])
                rows["trainer"]["gain"] = gain
                for row in rows.values():
                    self.write(row)
                print(f"  two threads of a trainer are {gain['median']:.2f} times as fast as one"
                      f" ({gain['q1']:.2f} .. {gain['q3']:.2f})")
                if case.batch >= 8:
                    self.claim(gain["median"] >= 1.85, f"two threads {gain['median']:.2f} times as fast, floor 1.85")

    def recompute(self):
        for shape in self.options.recomputed:
            case, part = Case("lstm", *shape), 100  # sqrt(steps)
            store_all = self.ours(case, 1, "store_all", chunk=part)
            played = [self.ours(case, 1, "periodic", chunk=part, schedule="periodic", period=1),
                      self.ours(case, 1, "revolve 5", chunk=part, schedule="revolve", slots=5)]
            checkpointed = self.torch(case, 1, " checkpoint", checkpoint=part)
            contestants = [self.limit(case, 1), store_all, *played, *self.onednn(case, 1), *checkpointed]
            self.time(contestants, "processor")
            rows = self.report(contestants, "processor", store_all)
            for c in played:
                facts = [c.ask("facts") for _ in range(5)]
                phi = statistics.median(f["advance"] / (f["record"] + f["reverse"]) for f in facts)
                measured = rows[c.who]["over_store_all"]["median"]
                advances, recorded = facts[0]["advances"], facts[0]["recorded"]
                counted = 1 + phi * advances / recorded
                rows[c.who].update(phi=phi, advances=advances, recorded=recorded, counted=counted)
                print(f"  {c.who}: {advances} links advanced and {recorded} recorded, phi {phi:.3f}: counted"
                      f" {counted:.3f}, measured {measured:.3f}, {100 * (measured / counted - 1):+.1f} %")
                self.claim(measured <= 1.03 * counted, f"{c.who} within 3 % of its counted work")
            for c in contestants:
                c.end()
            for row in rows.values():
                self.write(row)
            if "onednn" in rows:
                self.claim(rows["store_all"]["held"] < rows["onednn"]["held"], "less memory than oneDNN's stored run")
            for c in checkpointed:
                self.claim(rows["periodic"]["held"] < rows[c.who]["held"], f"less memory than {c.who}")

    def overhead(self):
        """A chain with everything stored against calls of its layers alone, in links of 32 steps of one sequence."""
        case = Case("lstm", 10000, 1, 64, 1)
        alone = self.ours(case, 1, "layers", chunk=32, by="layers")
        chain = self.ours(case, 1, "chain", chunk=32)
        contestants = [self.limit(case, 1), alone, chain]
        self.time(contestants, "processor")
        rows = self.report(contestants, "processor", alone)
        for c in contestants:
            c.end()
        for row in rows.values():
            self.write(row)
        ratio = rows["chain"]["over_layers"]["median"]
        self.claim(ratio < 1.01, f"chain, schedule, Execution and ledger take {100 * (ratio - 1):.2f} % of a step, floor 1 %")


def main():
    modes = ["one_thread", "two_threads", "recompute", "overhead"]
    parser = argparse.ArgumentParser(
        description="Times recurrent layers against their peers; exit 1 where a floor is not met.")
    parser.add_argument("build", help="folder in which this bench was built")
    parser.add_argument("--modes", default=",".join(modes), help="of " + ",".join(modes))
    parser.add_argument("--cells", default=",".join(CELLS), help="of " + ",".join(CELLS))
    parser.add_argument("--cases", default="", help="only cases with this in `stepsxbatchxhiddenxlayers`")
    parser.add_argument("--rounds", type=int, default=9, help="steps of each that count (9; at least 7)")
    parser.add_argument("--chunk", type=int, default=0, help="steps a link of ours; 0: as the bench has it")
    parser.add_argument("--cores", default="0,1", help="cores to run on; one thread has the first (0,1)")
    parser.add_argument("--python", action="append",
                        help="an interpreter with PyTorch; may be given again (/usr/bin/python3)")
    parser.add_argument("--json", help="file for one object a case and contestant")
    options = parser.parse_args()
    if options.rounds < 7:
        parser.error("a median and quartiles want at least 7 rounds")
    options.shapes, options.recomputed = (
        [s for s in shapes if options.cases in "x".join(map(str, s))] for shapes in (SHAPES, RECOMPUTE))
    options.cells = options.cells.split(",")
    asked = options.modes.split(",")
    if unknown := [m for m in asked if m not in modes] + [c for c in options.cells if c not in CELLS]:
        parser.error("unknown: " + ", ".join(unknown))
    bench = Bench(options)
    bench.machine()
    bench.check()
    for mode in asked:
        bench.mode = mode
        getattr(bench, mode)()
    print("\nall floors met" if bench.met else "\nNOT MET: see above")
    return 0 if bench.met else 1


if __name__ == "__main__":
    sys.exit(main())
