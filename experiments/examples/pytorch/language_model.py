"""The language model of `backsweep train` as a PyTorch module: layers have the same names, so weights go both ways.

    language_model.py make IN.safetensors TOKENS     a fresh model's weights for `model.weights`
    language_model.py loss IN.safetensors TEXT       bits per byte of a text, the state carried through, as `backsweep eval`

The vocabulary is the bytes that occur, in rising order. Options are those of the configuration.
SPDX-License-Identifier: MIT"""
import argparse
import math

import torch

import weights


class LanguageModel(torch.nn.Module):
    def __init__(self, tokens, features, hidden, layers, cell, tied):
        super().__init__()
        self.embedding = torch.nn.Embedding(tokens, features)
        self.rnn = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}[cell](features, hidden, layers)
        self.head = torch.nn.Linear(hidden, tokens)
        if tied:
            self.head.weight = self.embedding.weight

    def forward(self, tokens, state=None):
        y, state = self.rnn(self.embedding(tokens), state)
        return self.head(y), state


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["make", "loss"])
    parser.add_argument("file")
    parser.add_argument("text")
    parser.add_argument("--embedding", type=int, default=32)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--cell", choices=["lstm", "gru"], default="lstm")
    parser.add_argument("--tied", action="store_true")
    parser.add_argument("--double", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--batch", type=int, default=1, help="streams side by side, as data.batch")
    parser.add_argument("--part", type=float, nargs=2, default=[0.0, 100.0], help="of the text, in percent")
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    text = open(options.text, "rb").read()
    vocabulary = sorted(set(text))
    model = LanguageModel(len(vocabulary), options.embedding, options.hidden, options.layers, options.cell, options.tied)
    if options.double:
        model = model.double()
    if options.what == "make":
        weights.save(options.file, model.state_dict())
        return

    state = weights.load(options.file)
    if options.tied:
        state.setdefault("head.weight", state["embedding.weight"])
    model.load_state_dict(state)
    first, last = (math.floor(len(text) * percent / 100 + 0.5) for percent in options.part)
    number = {byte: token for token, byte in enumerate(vocabulary)}
    tokens = torch.tensor([number[byte] for byte in text[first:last]])
    length = (len(tokens) - 1) // options.batch
    streams = lambda shift: tokens[shift : shift + options.batch * length].reshape(options.batch, length).T
    with torch.no_grad():
        scores, _ = model(streams(0))
        loss = torch.nn.functional.cross_entropy(scores.reshape(-1, len(vocabulary)), streams(1).reshape(-1))
    print(f"{loss.item() / math.log(2):.12f}")


if __name__ == "__main__":
    main()
