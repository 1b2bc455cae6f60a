"""Serve a model to Slotscope over standard input and output, with only NumPy.

    slotscope adopt --dataset NAME python3 slotscope_adapter.py       serves the bundle in this file's folder

For your own model, write a program that calls serve() with your functions:

    from slotscope_adapter import serve
    serve(name="mine", slots=10, codes=512, image=(64, 64, 3),
          encode=lambda x: ...,   # uint8 [n, H, W, C] -> integers [n, slots]; floats [n, slots] if codes is 0
          decode=lambda s: ...)   # output of encode -> floats [n, H, W, C] in [0, 1]

Slotscope's docs/adopt.md describes the messages.
"""
import json
import os
import sys
import traceback

import numpy as np


class Stream:
    """Wraps a pipe for NumPy, which would try to seek in file objects."""

    def __init__(self, pipe):
        self.pipe = pipe

    def read(self, n):
        return self.pipe.read(n)

    def write(self, data):
        return self.pipe.write(data)


def serve(name, slots, codes, image, encode, decode, latent=None, read=None, latent_size=0, seed=0, step=1):
    """Reply to messages until standard input ends. latent maps images to z, float [n, latent_size], and read maps z to the output
    of encode; without them Slotscope measures noise only if slots hold numbers."""
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # redirect the model's prints to standard error
    hello = {"slotscope": 1, "name": name, "slots": slots, "codes": codes, "image": list(image), "seed": seed, "step": step}
    work = {"encode": encode, "decode": decode}
    if latent and read:
        hello["latent"] = latent_size
        work.update(latent=latent, read=read)

    def answer(line, array=None):
        sink.write(json.dumps(line).encode() + b"\n")
        if array is not None:
            np.lib.format.write_array(Stream(sink), array, allow_pickle=False)
        sink.flush()

    for line in iter(source.readline, b""):
        do = json.loads(line)["do"]
        if do == "hello":
            answer(hello)
            continue
        x = np.lib.format.read_array(Stream(source), allow_pickle=False)
        try:
            y = np.ascontiguousarray(work[do](x))
        except Exception as error:  # the next message may succeed
            traceback.print_exc()
            answer({"error": f"{type(error).__name__}: {error}"})
            continue
        answer({"ok": True}, y)


def serve_bundle(folder):
    """Serve a Slotscope bundle with PyTorch."""
    import torch

    from slotscope_model import SlotModel

    model = SlotModel.from_pretrained(folder)
    c = model.config

    def decode(slots):
        return model.decode(torch.from_numpy(slots)).permute(0, 2, 3, 1).numpy()

    with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
        step = max(1, json.load(f)["step"])
    serve(name=f"{model.kind} {c['preset']}", slots=model.m, codes=model.k if model.discrete else 0,
          image=(model.height, model.width, model.channels), seed=c["seed"], step=step,
          encode=lambda x: model.codes(x).numpy(), decode=decode,
          latent=lambda x: model.encode(x).numpy(), read=lambda z: model.represent(torch.from_numpy(z)).numpy(), latent_size=model.n)


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path.insert(0, here)
    serve_bundle(sys.argv[1] if len(sys.argv) > 1 else here)
