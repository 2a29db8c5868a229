#!/usr/bin/env python3
# PyTorch's training step of an LSTM or a GRU, with the gradient of the inputs. checkpoint=N: torch.utils.checkpoint
# over parts of N steps, the loss of a part within it. Arguments, numbers and words are those of contestant.hpp.
# SPDX-License-Identifier: MIT
import ctypes
import gc
import json
import sys
import time

import torch
from torch.utils.checkpoint import checkpoint


def status(name):
    """Of this process: a line of /proc/self/status, in bytes."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def numbers(array, size, width):
    """Elements of an array of the case, made by parts: whole ones in 64 bits would be this process's peak."""
    out = torch.empty(size)
    mask = 0xFFFFFFFF
    for first in range(0, size, 1 << 16):
        last = min(size, first + (1 << 16))
        u = (torch.arange(first + 1, last + 1) + (array << 28)) * 2654435761 & mask
        u ^= u >> 16
        u = u * 0x85EBCA6B & mask
        u ^= u >> 13
        out[first:last] = ((u >> 8).float() * 2.0**-23 - 1.0) * width
    return out


class Torch:
    def __init__(self, case):
        steps, batch, hidden, layers = (int(case[key]) for key in ("steps", "batch", "hidden", "layers"))
        torch.set_num_threads(int(case["threads"]))
        make = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[case["cell"]]
        self.net = make(hidden, hidden, layers)
        values = numbers(0, sum(p.numel() for p in self.net.parameters()), hidden**-0.5)
        with torch.no_grad():
            for p in self.net.parameters():
                p.copy_(values[: p.numel()].view(p.shape))
                values = values[p.numel() :]
        shape = (steps, batch, hidden)
        self.x = numbers(1, steps * batch * hidden, 1.0).view(shape).requires_grad_()
        self.target = numbers(2, steps * batch * hidden, 1.0).view(shape)
        self.scale = 1.0 / (steps * batch * hidden)
        self.part = int(case.get("checkpoint", 0))
        self.start = [torch.zeros(layers, batch, hidden) for _ in range(2 if case["cell"] == "lstm" else 1)]
        self.loss = None

    def run(self, x, target, *state):
        y, after = self.net(x, tuple(state) if len(state) > 1 else state[0])
        return (torch.nn.functional.mse_loss(y, target, reduction="sum"), *(after if len(state) > 1 else (after,)))

    def step(self):
        self.net.zero_grad(set_to_none=True)
        self.x.grad = None
        if self.part == 0:
            loss = self.run(self.x, self.target, *self.start)[0]
        else:
            loss, state = torch.zeros(()), self.start
            for x, target in zip(self.x.split(self.part), self.target.split(self.part)):
                of_part, *state = checkpoint(self.run, x, target, *state, use_reentrant=True)
                loss = loss + of_part
        loss = loss * self.scale
        loss.backward()
        self.loss = loss.detach()

    def gradients(self, path):
        every = [self.loss.view(1), *(p.grad.reshape(-1) for p in self.net.parameters()), self.x.grad.reshape(-1)]
        with open(path, "wb") as file:
            for each in every:
                file.write(bytes(each.contiguous().numpy().data))


def main():
    case = dict(word.split("=", 1) for word in sys.argv[1:])
    few = Torch({**case, "steps": 4, "checkpoint": min(2, int(case.get("checkpoint", 0)))})  # code, and what it loads
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
