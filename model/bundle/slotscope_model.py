"""Load a Slotscope model with only PyTorch and NumPy.

    from slotscope_model import SlotModel
    model = SlotModel.from_pretrained("path/to/bundle")   # the folder with config.json and model.safetensors
    z     = model.encode(images)                           # [B, n] latents
    codes = model.codes(images)                            # [B, m] codes; numbers for VAEs, ae and bioae
    x     = model.decode(codes)                            # [B, C, H, W] images in [0, 1]
    y     = model.swap(a, b, slots=[2])                    # images a with slot 2 of images b

Images are uint8 [B, H, W, C] (arrays or tensors), or floats in [0, 1] as [B, C, H, W]. `python slotscope_model.py` checks the
model against the examples in check.npz, written by Slotscope. Requires PyTorch 1.13 or later.
"""
import json
import math
import os
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

DTYPES = {"F32": np.float32, "F64": np.float64, "F16": np.float16}


def read_safetensors(path):
    """Read the tensors of a safetensors file: u64 header length, JSON header, little-endian data."""
    with open(path, "rb") as f:
        raw = f.read()
    size = int.from_bytes(raw[:8], "little")
    header, body = json.loads(raw[8 : 8 + size]), raw[8 + size :]
    header.pop("__metadata__", None)
    out = {}
    for name, t in header.items():
        start, end = t["data_offsets"]
        data = np.frombuffer(body[start:end], DTYPES[t["dtype"]]).reshape(t["shape"])
        out[name] = torch.from_numpy(np.array(data, dtype=np.float32))
    return out


class Up(nn.Module):
    """Transposed convolution (kernel 4, stride 2, padding 1), LeakyReLU 0.2, instance norm, AdaIN with style w."""

    def __init__(self, c_in, c_out, style):
        super().__init__()
        self.conv = nn.ConvTranspose2d(c_in, c_out, 4, 2, 1, bias=False)
        self.affine = nn.Linear(style, 2 * c_out)

    def forward(self, x, w):
        x = F.instance_norm(F.leaky_relu(self.conv(x), 0.2), eps=1e-5)
        scale, bias = self.affine(w).chunk(2, dim=1)
        return x * (1 + scale[:, :, None, None]) + bias[:, :, None, None]


class SlotModel(nn.Module):
    """A Slotscope autoencoder with m slots, k codes and d numbers per entry."""

    def __init__(self, config, image):
        super().__init__()
        c = self.config = config
        self.kind, self.m, self.k, self.d = c["model"], c["m"], c["k"], c["d"]
        self.height, self.width, self.channels = image["height"], image["width"], image["channels"]
        self.discrete = self.kind in ("hrr", "vqvae", "qlae", "tripod")
        self.n = {"hrr": self.d, "vqvae": self.m * self.d}.get(self.kind, self.m)  # length of z
        self.gain = math.sqrt(self.m / self.d) if self.kind == "hrr" else 1.0  # z = f(x) * gain, x = g(z / gain)
        widths, fc = c["widths"], c["fc"]
        h, w = self.height // 16, self.width // 16
        layers, last = [], self.channels
        for width in widths:
            layers += [nn.Conv2d(last, width, 4, 2, 1, bias=False), nn.InstanceNorm2d(width, affine=True, eps=1e-5), nn.LeakyReLU(0.2)]
            last = width
        self.encoder = nn.Sequential(*layers)
        self.fc1 = nn.Linear(last * h * w, fc)
        self.fc2 = nn.Linear(fc, self.n if self.discrete or self.kind in ("ae", "bioae") else 2 * self.m)  # VAEs: means, then log variances
        self.canvas = nn.Parameter(torch.zeros(1, last, h, w))
        self.style = nn.Linear(self.n, fc)
        outs = list(reversed(widths))
        self.up = nn.ModuleList([Up(i, o, fc) for i, o in zip([outs[0]] + outs[:-1], outs)])
        self.out = nn.Conv2d(widths[0], self.channels, 3, 1, 1, bias=False)
        if self.kind == "vqvae":
            self.codebook = nn.Parameter(torch.zeros(self.k, self.d))
        if self.kind == "qlae":
            self.codebook = nn.Parameter(torch.zeros(self.m, self.k))  # one scalar codebook per slot
        if self.kind == "hrr":
            self._build_hrr()

    def _build_hrr(self):
        c, d, m = self.config, self.d, self.m
        if not c.get("no_denoiser"):
            self.denoise1, self.denoise2 = nn.Linear(d, 2 * d), nn.Linear(2 * d, d)
        if c.get("free_codebook"):
            self.codebook = nn.Parameter(torch.zeros(self.k, d))
        else:
            self.seeds = nn.Parameter(torch.zeros(self.k, d))
            self.generator1, self.generator2 = nn.Linear(d, d), nn.Linear(d, d)
        binding = c.get("binding", "")
        if binding == "random":
            self.binding = nn.Parameter(torch.zeros(m, d, d))
        elif binding == "permutation":
            self.binding = nn.Parameter(torch.zeros(m, d))
        elif binding == "":
            self.symbols = nn.Parameter(torch.zeros(m, d))

    @classmethod
    def from_pretrained(cls, folder):
        """Load a model from a folder with config.json and model.safetensors."""
        with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
            described = json.load(f)
        model = cls(described["config"], described["image"])
        tensors = read_safetensors(os.path.join(folder, "model.safetensors"))
        model.load_state_dict({n: t for n, t in tensors.items() if not n.startswith("discriminator") and n != "usage"})  # used only in training
        return model.requires_grad_(False).eval()

    def images(self, x):
        """Convert x to float32 [B, C, H, W] in [0, 1]."""
        x = torch.as_tensor(np.ascontiguousarray(x) if isinstance(x, np.ndarray) else x)
        if x.dtype == torch.uint8:
            x = x.permute(0, 3, 1, 2).float() / 255
        if x.shape[1:] != (self.channels, self.height, self.width):
            raise ValueError(f"images have shape {tuple(x.shape)}; pass uint8 [B, {self.height}, {self.width}, {self.channels}] "
                             f"or floats [B, {self.channels}, {self.height}, {self.width}]")
        return x.float()

    def encode(self, x):
        """Encode images to latents z, [B, n]. For a VAE, z is the mean."""
        h = F.relu(self.fc1(self.encoder(self.images(x)).flatten(1)))
        return self.fc2(h)[:, : self.n] * self.gain

    def codes(self, x):
        """Encode images to slots: codes, int64 [B, m], or numbers, float32 [B, m]."""
        return self.represent(self.encode(x))

    def represent(self, z):
        """Convert latents z, [B, n], to codes (or numbers), [B, m]."""
        if not self.discrete:
            return z
        if self.kind == "tripod":
            return ((z.tanh() + 1) / 2 * (self.k - 1)).round().long()
        if self.kind == "qlae":
            return (z[:, :, None] - self.codebook[None]).abs().argmin(2)
        entries, v = self.entries(), self.denoise(self.retrieve(z))
        return ((entries**2).sum(1) - 2 * v @ entries.T).argmin(-1)

    def retrieve(self, z):
        """Raw retrievals, [B, m, d]: M_i^T z for hrr, the parts of z for vqvae."""
        if self.kind == "vqvae":
            return z.reshape(-1, self.m, self.d)
        return torch.einsum("inj,bn->bij", self.matrices(unbind=True), z)

    def denoise(self, v):
        if self.kind != "hrr" or self.config.get("no_denoiser"):
            return v
        return self.denoise2(F.leaky_relu(self.denoise1(v), 0.01))

    def entries(self):
        """The codebook: [k, d], and [m, k] for qlae."""
        if hasattr(self, "codebook"):
            return self.codebook
        return self.generator2(F.leaky_relu(self.generator1(self.seeds), 0.01)) * math.sqrt(1 / self.d)

    def matrices(self, unbind=False):
        """M_i of z = sum_i M_i v_i, [m, d, d], or with unbind those whose transposes retrieve."""
        m, d, binding = self.m, self.d, self.config.get("binding", "")
        if binding == "random":
            return self.binding
        if binding == "permutation":
            return F.one_hot(self.binding.long(), d).float()
        if binding == "concat":
            width, out = d // m, torch.zeros(m, d, d)
            for i in range(m):
                out[i, i * width : (i + 1) * width, :width] = math.sqrt(m) * torch.eye(width)
            return out
        symbols = self.symbols
        if unbind and self.config.get("inverse") == "exact":
            spectrum = torch.fft.rfft(symbols.double())
            exact = torch.fft.irfft(spectrum.conj() / spectrum.abs() ** 2, n=d).float()
            symbols = torch.roll(exact.flip(1), 1, 1)  # the involution, which the transpose undoes
        n = torch.arange(d)
        return symbols[:, (n[:, None] - n[None]) % d]  # circulants: M v is circular convolution with the symbol

    def bundle(self, codes):
        """Convert codes [B, m] to the decoder's input, [B, n]."""
        if not self.discrete:
            return codes
        if self.kind == "tripod":
            return 2 * codes.float() / (self.k - 1) - 1
        if self.kind == "qlae":
            return torch.gather(self.codebook.expand(codes.shape[0], -1, -1), 2, codes[:, :, None])[:, :, 0]
        v = self.entries()[codes]
        return v.flatten(1) if self.kind == "vqvae" else torch.einsum("inj,bij->bn", self.matrices(), v)

    def decode(self, codes):
        """Decode codes (or numbers), [B, m], to images in [0, 1], [B, C, H, W]."""
        codes = torch.as_tensor(codes)
        return torch.sigmoid(self.logits(self.bundle(codes.long() if self.discrete else codes.float())))

    def logits(self, bundle):
        w = F.relu(self.style(bundle / self.gain))
        x = self.canvas.expand(w.shape[0], -1, -1, -1)
        for layer in self.up:
            x = layer(x, w)
        return self.out(x)

    def swap(self, a, b, slots):
        """Encode images a and b, replace the given slots (0 … m-1) of a by those of b, and decode."""
        codes, other = self.codes(a).clone(), self.codes(b)
        codes[:, list(slots)] = other[:, list(slots)]
        return self.decode(codes)


def check(folder):
    """Compare the model's outputs with those of Slotscope in check.npz."""
    model, want = SlotModel.from_pretrained(folder), np.load(os.path.join(folder, "check.npz"))
    slots, images = model.codes(want["images"]).numpy(), model.decode(want["slots"]).permute(0, 2, 3, 1).numpy()
    other = slots != want["slots"] if model.discrete else np.abs(slots - want["slots"]) > 1e-4
    apart = float(np.abs(images - want["decoded"]).max())
    print(json.dumps({"images": len(images), "slots": slots.size, "other_slots": int(other.sum()), "largest_difference": apart}))
    return not other.any() and apart <= 1e-4


if __name__ == "__main__":
    folders = sys.argv[1:] or [os.path.dirname(os.path.abspath(__file__))]
    sys.exit(0 if all([check(folder) for folder in folders]) else 1)
