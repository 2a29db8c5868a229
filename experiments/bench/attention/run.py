#!/usr/bin/env python3
# Causal attention, 4 heads of 64 features, forward and reverse on one core, against PyTorch: every contestant is a process
# that makes a step when it is told to, so that all are timed in turn, in the same minute, beside the core's limit.
# See README.md.
# SPDX-License-Identifier: MIT
import argparse
import array
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
HEADS, WIDTH = 4, 64
FLOORS = {1024: 2.5, 2048: 5.0, 4096: 5.0}  # times of PyTorch 1.13 over ours
SHARE = 0.80  # of the limit, of the operations that are done
MIB = 1 << 20


def flops(steps, panel):
    """Seven products; a panel of queries sees the keys that its last one sees. panel 1: what causal attention needs."""
    pairs = sum(panel * min(steps, first + panel) for first in range(0, steps, panel))
    return 7 * 2 * WIDTH * HEADS * pairs


class Contestant:
    def __init__(self, who, command, core, **words):
        self.who, self.times = who, []
        pools = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        words = {"heads": HEADS, "hidden": WIDTH, "threads": 1, **words}
        self.process = subprocess.Popen([*command, *(f"{k}={v}" for k, v in words.items())], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env={**os.environ, **pools},
                                        preexec_fn=lambda: os.sched_setaffinity(0, [core]))
        self.version = self.answer()["version"]

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.who} ended with {self.process.wait()}")
        return json.loads(line)

    def ask(self, word):
        print(word, file=self.process.stdin, flush=True)
        return self.answer()

    def result(self):
        with tempfile.NamedTemporaryFile() as file:
            self.ask(f"gradients {file.name}")
            values = array.array("f")
            values.frombytes(pathlib.Path(file.name).read_bytes())
        return values

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def has_sdpa(python):
    return subprocess.run([python, "-c", "import torch; torch.nn.functional.scaled_dot_product_attention"],
                          stderr=subprocess.DEVNULL).returncode == 0


def main():
    parser = argparse.ArgumentParser(description="Times causal attention against PyTorch; exit 1 where a floor is not met.")
    parser.add_argument("build", type=pathlib.Path, help="folder in which this bench was built")
    parser.add_argument("--rounds", type=int, default=9, help="steps of each that count (9)")
    parser.add_argument("--core", type=int, default=0, help="core to run on (0)")
    parser.add_argument("--steps", default="1024,2048,4096", help="lengths (1024,2048,4096)")
    parser.add_argument("--python", action="append", help="an interpreter with PyTorch; may be given again (/usr/bin/python3)")
    parser.add_argument("--json", help="file for one object a length and contestant")
    options = parser.parse_args()
    met = True

    def claim(holds, what):
        nonlocal met
        met = met and holds
        if not holds:
            print(f"  NOT MET: {what}")

    with open("/proc/cpuinfo") as info:
        print(next(line.split(":")[1].strip() for line in info if line.startswith("model name")))
    out = open(options.json, "w") if options.json else None
    for steps in map(int, options.steps.split(",")):
        limit = Contestant("limit", [options.build / "bench_attention_limit"], options.core, steps=steps)
        ours = [Contestant(f"ours, heads {layout}", [options.build / "bench_attention_ours"], options.core, steps=steps, layout=layout)
                for layout in ("apart", "beside")]
        peers = []
        for python in options.python or ["/usr/bin/python3"]:
            for form in ("plain", "sdpa") if has_sdpa(python) else ("plain",):
                peers.append(Contestant(f"torch {form}", [python, HERE / "peer_torch.py"], options.core, steps=steps, form=form))
        memory = {}
        for c in (*ours, *peers):
            c.ask("step")
            memory[c] = c.ask("memory")  # before results are copied
        for other in (*ours[1:], *peers):
            a, b = ours[0].result(), other.result()
            worst = max(abs(x - y) for x, y in zip(a, b)) / max(map(abs, b))
            claim(worst < 1e-5, f"the results of {other.who} {other.version}: {worst:.1e} of the largest")
        rates = []
        for _ in range(options.rounds):
            limit.ask("step")
            rates.append(limit.ask("facts")["registers"])
            for c in (*ours, *peers):
                c.times.append(c.ask("step")["processor"])
        rate, needed, done = statistics.median(rates), flops(steps, 1), flops(steps, 16)
        print(f"{steps} steps, limit {rate * 1e-9:.1f} GFLOP/s ({limit.version})")
        for c in (*ours, *peers):
            q1, median, q3 = statistics.quantiles(c.times, n=4, method="inclusive")
            share = statistics.median(done / r / t for r, t in zip(rates, c.times))
            ratio = statistics.median(t / o for t, o in zip(c.times, ours[0].times))
            held, peak = memory[c]["held"], memory[c]["peak"]
            line = f"  {c.who + ' ' + c.version:<34}{median * 1e3:9.2f} ms ({min(c.times) * 1e3:.2f} .. {q1 * 1e3:.2f} .. {q3 * 1e3:.2f})"
            line += f", {needed / median * 1e-9:6.1f} GFLOP/s needed, {peak / MIB:,.0f} MiB, {held / MIB:,.0f} of the step's"
            if c in ours:
                line += f", {share:.3f} of the limit"
                claim(share >= SHARE, f"{c.who}: {share:.3f} of the limit, floor {SHARE}")
                claim(steps > 4096 or peak <= 38 * MIB, "38 MiB in all up to 4096 steps")
            else:
                line += f", {ratio:.2f} times ours"
                floor = FLOORS.get(steps, 1.0) if c.version.startswith("1.13") else 1.0
                claim(ratio >= floor, f"{ratio:.2f} times as fast as {c.who} {c.version}, floor {floor}")
            print(line, flush=True)
            if out:
                ns = {"median": median * 1e9 / steps, "q1": q1 * 1e9 / steps, "q3": q3 * 1e9 / steps, "min": min(c.times) * 1e9 / steps}
                row = {"mode": "attention", "case": f"attention {steps}x{HEADS}x{WIDTH}", "who": c.who, "version": c.version,
                       "threads": 1, "ns": ns, "limit": rate, **memory[c]}
                print(json.dumps({**row, "share": share} if c in ours else row), file=out)
        for c in (limit, *ours, *peers):
            c.end()
    print("all floors met" if met else "NOT MET: see above")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
