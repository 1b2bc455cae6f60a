#!/usr/bin/env python3
"""A second implementation of the models, in PyTorch, to compare the Go program with.

    reference.py infer CHECKPOINT.safetensors IMAGES.npy OUT.npz [CHECKPOINT IMAGES OUT]...
        reads a checkpoint's tensors by name and its configuration from the metadata, encodes the images (uint8, or floats in
        [0, 1]; channels first or last) and writes codes [N, m] (the means of a VAE), z_hat [N, n] and logits [N, C, H, W].
    reference.py golden SEED MODEL OUT.npz [MODEL OUT.npz]...
        draws a small model of a kind in SMALL and a batch, and writes parameters, batch, noise, intermediates between
        encoder and decoder, every term of the objective, the objective and all its gradients, computed in float64.
        config is the configuration in the Go program's format.

Needs torch and numpy. Binding uses the FFT here and circulant matrices in the Go program; densities use torch.distributions
here and are written out there, so agreement validates both.
"""
import json
import math
import struct
import sys

import numpy as np
import torch
from torch.distributions import Normal, kl_divergence
from torch.nn.functional import binary_cross_entropy_with_logits, conv2d, conv_transpose2d, instance_norm, leaky_relu, linear, mse_loss, relu


def dense(p, name, x):
    return linear(x, p[name + ".weight"], p[name + ".bias"])


def encoder(p, x):
    for i in (0, 3, 6, 9):
        x = conv2d(x, p[f"encoder.{i}.weight"], stride=2, padding=1)
        x = instance_norm(x, weight=p[f"encoder.{i + 1}.weight"], bias=p[f"encoder.{i + 1}.bias"], eps=1e-5)
        x = leaky_relu(x, 0.2)
    return dense(p, "fc2", relu(dense(p, "fc1", x.flatten(1))))


def decoder(p, z):
    style = relu(dense(p, "style", z))
    x = p["canvas"].expand(len(z), -1, -1, -1)
    for i in range(4):
        x = conv_transpose2d(x, p[f"up.{i}.conv.weight"], stride=2, padding=1)
        x = instance_norm(leaky_relu(x, 0.2), eps=1e-5)
        scale, shift = dense(p, f"up.{i}.affine", style)[:, :, None, None].chunk(2, dim=1)
        x = x + scale * x + shift
    return conv2d(x, p["out.weight"], padding=1)


def bind(a, b):
    """Circular convolution along the last axis."""
    return torch.fft.irfft(torch.fft.rfft(a) * torch.fft.rfft(b), n=a.shape[-1])


def involution(s):
    return torch.roll(s.flip(-1), 1, dims=-1)


def hrr_codebook(p):
    if "codebook" in p:
        return p["codebook"]
    entries = dense(p, "generator2", leaky_relu(dense(p, "generator1", p["seeds"]), 0.01))
    return entries / p["seeds"].shape[1] ** 0.5


def binding(p, config):
    """bind: [B, m, d] to [B, m, d], slot by slot, and unbind: [B, d] to [B, m, d]."""
    m, d, kind = config["m"], config["d"], config.get("binding") or "circular"
    if kind == "circular":
        s = p["symbols"]
        return lambda v: bind(s, v), lambda z: bind(involution(s), z[:, None])
    if kind == "permutation":
        order = p["binding"].long()
        back = order.argsort(-1)
        return (lambda v: v.gather(2, order.expand(len(v), -1, -1)),
                lambda z: z[:, None].expand(-1, m, -1).gather(2, back.expand(len(z), -1, -1)))
    if kind == "random":
        matrices = p["binding"]
    else:  # concat
        w, matrices = d // m, torch.zeros(m, d, d)
        for i in range(m):
            matrices[i, i * w:(i + 1) * w, :w] = torch.eye(w) * m ** 0.5
    return (lambda v: torch.einsum("inj,bij->bin", matrices, v), lambda z: torch.einsum("inj,bn->bij", matrices, z))


def infer_hrr(p, config, x):
    m, d = config["m"], config["d"]
    into, out_of = binding(p, config)
    values = out_of(encoder(p, x) * (m / d) ** 0.5)
    if "denoise1.weight" in p:
        values = dense(p, "denoise2", leaky_relu(dense(p, "denoise1", values), 0.01))
    entries = hrr_codebook(p)
    codes = (entries.square().sum(-1) - 2 * values @ entries.T).argmin(-1)
    z_hat = into(entries[codes]).sum(1)
    return codes, z_hat, decoder(p, z_hat * (d / m) ** 0.5), {"values": values, "entries": entries}


def quantize_vqvae(p, config, z):
    parts = z.unflatten(1, (config["m"], config["d"]))
    codes = torch.cdist(parts, p["codebook"][None], compute_mode="donot_use_mm_for_euclid_dist").argmin(-1)
    return parts, codes, p["codebook"][codes]


def quantize_qlae(p, config, z):
    codes = torch.stack([(z[:, i, None] - values).abs().argmin(-1) for i, values in enumerate(p["codebook"])], dim=1)
    values = torch.stack([p["codebook"][i][codes[:, i]] for i in range(config["m"])], dim=1)
    return z[..., None], codes, values[..., None]


QUANTIZE = {"vqvae": quantize_vqvae, "qlae": quantize_qlae}


def infer_quantized(p, config, x):
    parts, codes, values = QUANTIZE[config["model"]](p, config, encoder(p, x))
    return codes, values.flatten(1), decoder(p, values.flatten(1)), {"values": parts, "entries": p["codebook"]}


def infer_vae(p, config, x):
    mean, _ = encoder(p, x).chunk(2, dim=1)
    return mean, mean, decoder(p, mean), {}


VAES = ("betavae", "betatcvae", "annealedvae", "dipvae1", "dipvae2")


def infer_plain(p, config, x):
    z = encoder(p, x)
    return z, z, decoder(p, z), {}


def infer_tripod(p, config, x):
    k = config["k"]
    codes = ((encoder(p, x).tanh() + 1) / 2 * (k - 1)).round().long()
    values = 2 * codes.float() / (k - 1) - 1
    return codes, values, decoder(p, values), {}


INFER = {"tripod": infer_tripod, "ae": infer_plain, "bioae": infer_plain, "hrr": infer_hrr, "vqvae": infer_quantized, "qlae": infer_quantized, "factorvae": infer_vae, **{name: infer_vae for name in VAES}}


def objective_quantized(p, config, x, noise):
    """Reconstruction, quantization and commitment, with a straight-through gradient."""
    z = encoder(p, x)
    parts, codes, values = QUANTIZE[config["model"]](p, config, z)
    straight = parts + (values - parts).detach()
    logits = decoder(p, straight.flatten(1))
    pull = "vq" if config["model"] == "vqvae" else "quantize"
    terms = {
        "recon": (config["lambda_rec"], binary_cross_entropy_with_logits(logits, x)),
        pull: (config["lambda_vq"], mse_loss(values, parts.detach())),
        "commit": (config["beta"], mse_loss(parts, values.detach())),
    }
    return terms, {"z": z, "retrieved": parts, "slots": codes, "bundle": straight.flatten(1), "logits": logits}


def objective_vae(p, config, x, noise):
    """Reconstruction from a sample, and the KL divergence from the prior, whole or in three parts."""
    mean, log_var = encoder(p, x).chunk(2, dim=1)
    posterior = Normal(mean, (0.5 * log_var).exp())
    prior = Normal(torch.zeros_like(mean), torch.ones_like(mean))
    z = mean + posterior.stddev * noise
    logits = decoder(p, z)
    terms = {"recon": (config["lambda_rec"], binary_cross_entropy_with_logits(logits, x))}
    pixels = x[0].numel()
    kl = kl_divergence(posterior, prior).sum(1).mean()
    if config["model"] == "betavae":
        terms["kl"] = (config["beta_kl"] / pixels, kl)
    elif config["model"] == "annealedvae":
        terms["gap"] = (config["gamma_kl"] / pixels, (kl - config["capacity"]).abs())
    elif config["model"].startswith("dipvae"):
        covariance = torch.cov(mean.T, correction=0)
        if config["model"] == "dipvae2":
            covariance = covariance + posterior.variance.mean(0).diag()
        terms["kl"] = (config["beta_kl"] / pixels, kl)
        terms["offdiagonal"] = (config["lambda_od"] / pixels, (covariance - covariance.diag().diag()).square().sum())
        terms["diagonal"] = (config["lambda_d"] / pixels, (covariance.diag() - 1).square().sum())
    else:
        among = Normal(mean[None], posterior.stddev[None]).log_prob(z[:, None])  # sample, posterior, latent
        batch = math.log(len(x))
        joint = torch.logsumexp(among.sum(2), dim=1) - batch
        product = (torch.logsumexp(among, dim=1) - batch).sum(1)
        terms["mi"] = (1 / pixels, (posterior.log_prob(z).sum(1) - joint).mean())
        terms["tc"] = (config["beta_tc"] / pixels, (joint - product).mean())
        terms["dwkl"] = (1 / pixels, (product - prior.log_prob(z).sum(1)).mean())
    return terms, {"z": mean, "retrieved": mean[..., None], "slots": mean, "bundle": mean, "logits": logits, "log_var": log_var, "sample": z}


OBJECTIVE = {"vqvae": objective_quantized, "qlae": objective_quantized, **{name: objective_vae for name in VAES}}


def shared_shapes(widths, fc, outputs, size, side, channels):
    """Shape of every tensor of encoder and decoder, by name."""
    shapes, c = {}, channels
    for i, w in enumerate(widths):
        shapes[f"encoder.{3 * i}.weight"] = (w, c, 4, 4)
        shapes[f"encoder.{3 * i + 1}.weight"] = shapes[f"encoder.{3 * i + 1}.bias"] = (w,)
        c = w
    shapes["canvas"] = (1, c, side // 16, side // 16)
    for i, w in enumerate(reversed(widths)):
        shapes[f"up.{i}.conv.weight"] = (c, w, 4, 4)
        shapes[f"up.{i}.affine.weight"], shapes[f"up.{i}.affine.bias"] = (2 * w, fc), (2 * w,)
        c = w
    shapes["out.weight"] = (channels, c, 3, 3)
    for name, (a, b) in {"fc1": (widths[-1] * (side // 16) ** 2, fc), "fc2": (fc, outputs), "style": (size, fc)}.items():
        shapes[name + ".weight"], shapes[name + ".bias"] = (b, a), (b,)
    return shapes


def draw(config, side, channels):
    """Parameters large enough that latents differ between images and most codes are used."""
    m, n = config["m"], config["m"] * config.get("d", 1)
    vae = config["model"] in VAES
    shapes = shared_shapes(config["widths"], config["fc"], 2 * m if vae else n, n, side, channels)
    if config["model"] == "vqvae":
        shapes["codebook"] = (config["k"], config["d"])
    elif config["model"] == "qlae":
        shapes["codebook"] = (m, config["k"])
    p = {}
    for name, shape in shapes.items():
        fan = math.prod(shape[1:]) if len(shape) > 1 else 1
        p[name] = torch.randn(shape, dtype=torch.float64) * {"canvas": 1, "codebook": 1, "fc2.weight": 1}.get(name, fan**-0.5)
    return {name: t.float().double().requires_grad_() for name, t in p.items()}


SMALL = {
    "vqvae": {"m": 3, "d": 4, "k": 12, "lambda_vq": 1, "beta": 0.25},
    "qlae": {"m": 4, "k": 6, "lambda_vq": 0.3, "beta": 0.2},
    "betavae": {"m": 4, "beta_kl": 40},
    "betatcvae": {"m": 4, "beta_tc": 60},
    "annealedvae": {"m": 4, "gamma_kl": 30, "capacity": 3},
    "dipvae1": {"m": 4, "beta_kl": 20, "lambda_od": 40, "lambda_d": 50},
    "dipvae2": {"m": 4, "beta_kl": 20, "lambda_od": 40, "lambda_d": 50},
}


def golden(kind, out, seed):
    torch.manual_seed(seed)
    config = {"model": kind, "widths": [4, 4, 8, 8], "fc": 16, "lambda_rec": 1, **SMALL[kind]}
    p = draw(config, side=32, channels=3)
    x = (torch.rand(5, 3, 32, 32) * 255).byte().double() / 255
    noise = torch.randn(len(x), config["m"]).double()
    terms, outs = OBJECTIVE[kind](p, config, x, noise)
    total = sum(weight * value for weight, value in terms.values())
    total.backward()
    arrays = {"x": x, "total": total}
    if "sample" in outs:
        arrays["noise"] = noise
    arrays.update({"loss/" + name: value for name, (_, value) in terms.items()})
    arrays.update({"out/" + name: t for name, t in outs.items()})
    arrays.update({"param/" + name: t for name, t in p.items()})
    arrays.update({"grad/" + name: t.grad for name, t in p.items()})
    arrays = {name: t.detach().numpy().astype(np.float32) for name, t in arrays.items()}
    np.savez_compressed(out, config=np.array(json.dumps(config)), **arrays)
    print(kind, {name: round(float(value), 5) for name, (_, value) in terms.items()}, "total", round(float(total), 5),
          "codes", len(torch.unique(outs["slots"])))


def load(path):
    """Every tensor of a safetensors file whose data are 32-bit floats, by name, and the configuration in its metadata."""
    with open(path, "rb") as f:
        (length,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(length))
        data = f.read()
    config = json.loads(header.pop("__metadata__")["config"])
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] != "F32":
            sys.exit(f"{name} holds {entry['dtype']}; this reads F32 alone")
        begin, end = entry["data_offsets"]
        tensors[name] = torch.from_numpy(np.frombuffer(data[begin:end], "<f4").reshape(entry["shape"]).copy())
    return tensors, config


def infer(checkpoint, images, out):
    p, config = load(checkpoint)
    x = np.load(images)
    scale = 255 if x.dtype == np.uint8 else 1
    x = torch.from_numpy(x.astype(np.float32) / scale)
    if x.shape[1] != p["encoder.0.weight"].shape[1]:
        x = x.permute(0, 3, 1, 2)
    with torch.no_grad():
        codes, z_hat, logits, choice = INFER[config["model"]](p, config, x)
    choice = {name: t.contiguous().numpy() for name, t in choice.items()}
    np.savez(out, codes=codes.numpy(), z_hat=z_hat.numpy(), logits=logits.contiguous().numpy(), **choice)


def main():
    args = sys.argv[1:]
    if args[:1] == ["infer"] and len(args) > 1 and len(args) % 3 == 1:
        for at in range(1, len(args), 3):
            infer(*args[at : at + 3])
    elif args[:1] == ["golden"] and len(args) > 2 and len(args) % 2 == 0 and all(kind in SMALL for kind in args[2::2]):
        for kind, out in zip(args[2::2], args[3::2]):
            golden(kind, out, int(args[1]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
