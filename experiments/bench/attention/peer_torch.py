#!/usr/bin/env python3
# PyTorch's causal attention, forward and reverse, on [1][head][step][feature]. form=plain: a product, a mask, a softmax, a
# product; form=sdpa: scaled_dot_product_attention. Numbers and words are those of ../recurrent/contestant.hpp.
# SPDX-License-Identifier: MIT
import ctypes
import gc
import json
import sys
import time

import torch

WIDTH = 64


def status(name):
    """Of this process: a line of /proc/self/status, in bytes."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def numbers(array, size, width):
    mask = 0xFFFFFFFF
    u = (torch.arange(1, size + 1) + (array << 28)) * 2654435761 & mask
    u ^= u >> 16
    u = u * 0x85EBCA6B & mask
    u ^= u >> 13
    return ((u >> 8).float() * 2.0**-23 - 1.0) * width


class Torch:
    def __init__(self, case):
        steps, heads = int(case["steps"]), int(case.get("heads", 4))
        torch.set_num_threads(int(case["threads"]))
        self.form = case.get("form", "plain")
        self.q, self.k, self.v, self.d_o = (numbers(a, steps * heads * WIDTH, 2.0).view(1, heads, steps, WIDTH) for a in range(4))
        for x in (self.q, self.k, self.v):
            x.requires_grad_()
        self.above = None if self.form == "sdpa" else torch.ones(steps, steps, dtype=torch.bool).triu(1)
        self.o = None

    def step(self):
        for x in (self.q, self.k, self.v):
            x.grad = None
        if self.form == "sdpa":
            o = torch.nn.functional.scaled_dot_product_attention(self.q, self.k, self.v, is_causal=True)
        else:
            scores = (self.q @ self.k.transpose(2, 3) * WIDTH**-0.5).masked_fill(self.above, float("-inf"))
            o = torch.softmax(scores, 3) @ self.v
        o.backward(self.d_o)
        self.o = o.detach()

    def gradients(self, path):
        with open(path, "wb") as file:
            for each in (torch.zeros(1), self.o, self.q.grad, self.k.grad, self.v.grad):
                file.write(bytes(each.contiguous().numpy().data))


def main():
    case = dict(word.split("=", 1) for word in sys.argv[1:])
    few = Torch({**case, "steps": 4})  # code, and what it loads
    few.step()
    del few
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak from here on
    before = status("VmRSS")
    contestant = Torch(case)
    print(json.dumps({"version": torch.__version__}), flush=True)
    for line in sys.stdin:
        word, *rest = line.split()
        answer = {}
        if word == "step":
            wall, processor = time.perf_counter(), time.process_time()
            contestant.step()
            answer = {"processor": time.process_time() - processor, "wall": time.perf_counter() - wall}
        elif word == "gradients":
            contestant.gradients(rest[0])
        elif word == "memory":
            peak = status("VmHWM")
            answer = {"peak": peak, "held": peak - before}
        print(json.dumps(answer), flush=True)


main()
