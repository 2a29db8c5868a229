"""Reads and writes .safetensors files with nothing but torch: a state_dict in, a state_dict out.
SPDX-License-Identifier: MIT"""
import json
import struct

import torch

TYPES = {"F64": torch.float64, "F32": torch.float32}


def load(path):
    """The tensors of a file by name; those of other types than F64 and F32 are left out."""
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = bytearray(file.read())
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] in TYPES:
            first, last = entry["data_offsets"]
            flat = torch.frombuffer(data[first:last], dtype=TYPES[entry["dtype"]])
            tensors[name] = flat.reshape(entry["shape"])
    return tensors


def save(path, tensors):
    """Writes tensors of one type; of several names for one memory (tied layers) each is written."""
    names = {dtype: name for name, dtype in TYPES.items()}
    header, blocks, end = {"__metadata__": {"format": "pt"}}, [], 0
    for name, tensor in tensors.items():
        block = tensor.detach().cpu().contiguous().numpy().tobytes()
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [end, end + len(block)]}
        blocks.append(block)
        end += len(block)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(blocks))
