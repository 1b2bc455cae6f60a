#!/usr/bin/env python3
"""Measures the training speed of the HRR autoencoder in PyTorch, for comparison with `slotscope bench train` in the same minute.

    torch_speed.py [--preset paper] [--batch 128] [--seconds 20] [--device cuda] [--precision tf32] [--compile]

prints one line of JSON: images per second of whole steps (forward, backward, clip, AdamW) on a batch that stays on the device, and the
median step time. --precision is tf32, float32 or bf16 (autocast; parameters, quantization and losses in float32). Needs only torch.
"""
import argparse
import contextlib
import json
import math
import time

import torch
from torch import nn
from torch.nn import functional as F

PRESETS = {
    "paper": dict(widths=(64, 128, 256, 512), d=512, m=9, k=512, fc=512),
    "small": dict(widths=(16, 32, 64, 128), d=256, m=9, k=256, fc=128),
    "tiny": dict(widths=(8, 16, 32, 64), d=128, m=9, k=128, fc=64),
}
WEIGHTS = dict(recon=1.0, vq=0.25, commit=0.6, codebook=1e-3)


class StyleConvT(nn.Module):
    def __init__(self, c_in, c_out, style):
        super().__init__()
        self.conv = nn.ConvTranspose2d(c_in, c_out, 4, 2, 1, bias=False)
        self.affine = nn.Linear(style, 2 * c_out)

    def forward(self, x, w):
        x = F.instance_norm(F.leaky_relu(self.conv(x), 0.2), eps=1e-5)
        scale, bias = self.affine(w).chunk(2, dim=1)
        return x * (1 + scale[:, :, None, None]) + bias[:, :, None, None]


class HRR(nn.Module):
    def __init__(self, widths, d, m, k, fc):
        super().__init__()
        self.d, self.m = d, m
        layers, c = [], 3
        for w in widths:
            layers += [nn.Conv2d(c, w, 4, 2, 1, bias=False), nn.InstanceNorm2d(w, affine=True), nn.LeakyReLU(0.2)]
            c = w
        self.encoder = nn.Sequential(*layers, nn.Flatten(), nn.Linear(widths[-1] * 16, fc), nn.ReLU(), nn.Linear(fc, d))
        self.canvas = nn.Parameter(torch.randn(1, widths[-1], 4, 4))
        self.style = nn.Linear(d, fc)
        outs = widths[::-1]
        self.up = nn.ModuleList(StyleConvT(i, o, fc) for i, o in zip((widths[-1],) + outs[:-1], outs))
        self.out = nn.Conv2d(widths[0], 3, 3, 1, 1, bias=False)
        self.denoise = nn.Sequential(nn.Linear(d, 2 * d), nn.LeakyReLU(0.01), nn.Linear(2 * d, d))
        self.seeds = nn.Parameter(torch.randn(k, d))
        self.generator = nn.Sequential(nn.Linear(d, d), nn.LeakyReLU(0.01), nn.Linear(d, d))
        symbols = torch.randn(m, d) / math.sqrt(d)
        index = (torch.arange(d)[:, None] - torch.arange(d)[None]) % d
        circulants = symbols[:, index].permute(1, 0, 2).reshape(d, m * d)  # all slots in one product
        self.register_buffer("circulants", circulants.contiguous())

    def decode(self, z):
        w = F.relu(self.style(z * math.sqrt(self.d / self.m)))
        x = self.canvas.expand(len(z), -1, -1, -1)
        for layer in self.up:
            x = layer(x, w)
        return self.out(x)

    def forward(self, x, half):
        with half():
            z = self.encoder(x)
        z = z.float() * math.sqrt(self.m / self.d)
        v = self.denoise((z @ self.circulants).view(-1, self.m, self.d))
        entries = self.generator(self.seeds) / math.sqrt(self.d)
        with torch.no_grad():
            codes = ((entries**2).sum(-1) - 2 * v @ entries.T).argmin(-1)
        q = entries[codes]
        bundle = (v + (q - v).detach()).flatten(1) @ self.circulants.T
        with half():
            logits = self.decode(bundle)
        terms = {
            "recon": F.binary_cross_entropy_with_logits(logits.float(), x),
            "vq": ((q - v.detach()) ** 2).sum(-1).mean(),
            "commit": ((q.detach() - v) ** 2).sum(-1).mean(),
            "codebook": ((entries**2).sum(-1).mean() - 1) ** 2 + entries.mean() ** 2 + (entries.var(unbiased=False) - 1 / self.d) ** 2,
        }
        return sum(WEIGHTS[name] * term for name, term in terms.items())


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--preset", default="paper", choices=PRESETS)
    p.add_argument("--batch", type=int, default=128)
    p.add_argument("--seconds", type=float, default=20)
    p.add_argument("--device", default="cuda")
    p.add_argument("--precision", default="tf32", choices=("tf32", "float32", "bf16"))
    p.add_argument("--compile", action="store_true")
    a = p.parse_args()
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = a.precision != "float32"
    torch.backends.cudnn.benchmark = True

    def half():
        return torch.autocast(a.device, torch.bfloat16) if a.precision == "bf16" else contextlib.nullcontext()

    model = HRR(**PRESETS[a.preset]).to(a.device)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-4, weight_decay=0)
    images = torch.rand(a.batch, 3, 64, 64, device=a.device)
    forward = torch.compile(model) if a.compile else model
    wait = torch.cuda.synchronize if a.device == "cuda" else (lambda: None)

    def step():
        optimizer.zero_grad()
        forward(images, half).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()

    began = time.perf_counter()
    for _ in range(5 if a.device == "cuda" else 1):  # warm-up: compiles and selects algorithms
        step()
    wait()
    prepared, times = time.perf_counter() - began, []
    began = last = time.perf_counter()
    while last - began < a.seconds:
        for _ in range(10 if a.device == "cuda" else 1):  # without synchronisation, so that the host runs ahead
            step()
        wait()
        now = time.perf_counter()
        times.append((now - last) / (10 if a.device == "cuda" else 1))
        last = now
    steps = len(times) * (10 if a.device == "cuda" else 1)
    print(json.dumps({
        "torch": torch.__version__, "device": a.device, "preset": a.preset, "batch": a.batch, "precision": a.precision, "compile": a.compile,
        "images_per_second": round(a.batch * steps / (last - began), 2), "step_ms": round(1e3 * sorted(times)[len(times) // 2], 3),
        "prepared_s": round(prepared, 1), "count": steps,
    }))


if __name__ == "__main__":
    main()
