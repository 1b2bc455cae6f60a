#!/usr/bin/env python3
"""What a checkpoint of the HRR autoencoder means, said a second time in PyTorch, to hold the Go program to.

    reference.py infer CHECKPOINT.safetensors IMAGES.npy OUT.npz

reads the tensors by name, encodes the images (uint8, or floats in [0, 1]; channels first or last) and writes codes [N, m],
z_hat [N, d] and logits [N, C, H, W]. Needs torch and numpy. Binding goes through the FFT here and through circulant matrices
in the Go program, so that agreement says something about both.
"""
import json
import struct
import sys

import numpy as np
import torch
from torch.nn.functional import conv2d, conv_transpose2d, instance_norm, leaky_relu, linear, relu


def load(path):
    """Every tensor of a safetensors file whose data are 32-bit floats, by name."""
    with open(path, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(length))
        data = f.read()
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] != "F32":
            sys.exit(f"{name} holds {entry['dtype']}; this reads F32 alone")
        begin, end = entry["data_offsets"]
        tensors[name] = torch.from_numpy(np.frombuffer(data[begin:end], "<f4").reshape(entry["shape"]).copy())
    return tensors


def dense(p, name, x):
    return linear(x, p[name + ".weight"], p[name + ".bias"])


def bind(a, b):
    """Circular convolution along the last axis."""
    return torch.fft.irfft(torch.fft.rfft(a) * torch.fft.rfft(b), n=a.shape[-1])


def involution(s):
    return torch.roll(s.flip(-1), 1, dims=-1)


def encode(p, x):
    for i in (0, 3, 6, 9):
        x = conv2d(x, p[f"encoder.{i}.weight"], stride=2, padding=1)
        x = instance_norm(x, weight=p[f"encoder.{i + 1}.weight"], bias=p[f"encoder.{i + 1}.bias"], eps=1e-5)
        x = leaky_relu(x, 0.2)
    m, d = p["symbols"].shape
    return dense(p, "fc2", relu(dense(p, "fc1", x.flatten(1)))) * (m / d) ** 0.5


def codebook(p):
    if "codebook" in p:
        return p["codebook"]
    entries = dense(p, "generator2", leaky_relu(dense(p, "generator1", p["seeds"]), 0.01))
    return entries / p["seeds"].shape[1] ** 0.5


def decode(p, z):
    m, d = p["symbols"].shape
    style = relu(dense(p, "style", z * (d / m) ** 0.5))
    x = p["canvas"].expand(len(z), -1, -1, -1)
    for i in range(4):
        x = conv_transpose2d(x, p[f"up.{i}.conv.weight"], stride=2, padding=1)
        x = instance_norm(leaky_relu(x, 0.2), eps=1e-5)
        scale, shift = dense(p, f"up.{i}.affine", style)[:, :, None, None].chunk(2, dim=1)
        x = x + scale * x + shift
    return conv2d(x, p["out.weight"], padding=1)


def infer(p, x):
    z = encode(p, x)
    values = bind(involution(p["symbols"]), z[:, None])
    if "denoise1.weight" in p:
        values = dense(p, "denoise2", leaky_relu(dense(p, "denoise1", values), 0.01))
    entries = codebook(p)
    codes = (entries.square().sum(-1) - 2 * values @ entries.T).argmin(-1)
    z_hat = bind(p["symbols"], entries[codes]).sum(1)
    return codes, z_hat, decode(p, z_hat)


def main():
    if len(sys.argv) != 5 or sys.argv[1] != "infer":
        sys.exit(__doc__)
    p = load(sys.argv[2])
    x = np.load(sys.argv[3])
    scale = 255 if x.dtype == np.uint8 else 1
    x = torch.from_numpy(x.astype(np.float32) / scale)
    if x.shape[1] != p["encoder.0.weight"].shape[1]:
        x = x.permute(0, 3, 1, 2)
    with torch.no_grad():
        codes, z_hat, logits = infer(p, x)
    np.savez(sys.argv[4], codes=codes.numpy(), z_hat=z_hat.numpy(), logits=logits.contiguous().numpy())


if __name__ == "__main__":
    main()
