"""Regenerates steps.safetensors: four whole training steps of an HSTU by PyTorch autograd and torch.optim.AdamW in double
precision, with dropout and sampled softmax. Masks and negatives are drawn here by Philox4x32-10 from the published
algorithm (Salmon et al., SC'11), keyed as ours are, so that both sides see the same random numbers.

    pip install torch numpy safetensors && python tests/golden/make_steps.py

Letters: T tokens, D width, H heads, A = V width of a head, N longest sequence + output slots, R negatives.
"""

import math
import pathlib

import numpy as np
import torch
from safetensors.numpy import save_file

HERE = pathlib.Path(__file__).parent
LENGTHS = [9, 1, 20, 13]
ITEMS, D, H, BLOCKS, N, R, STEPS = 40, 24, 2, 2, 21, 8, 4
A = D // H
P, TEMPERATURE, LR, SEED = 0.2, 0.05, 1e-2, 5
T = sum(LENGTHS)
MASK = (1 << 64) - 1
torch.set_default_dtype(torch.float64)
generator = np.random.default_rng(11)


def mix(z):
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def key_of(seed, step, purpose):
    h = seed
    for word in (step, purpose):
        h = mix(h ^ mix((word + 0x9E3779B97F4A7C15) & MASK))
    return h & 0xFFFFFFFF, h >> 32


def philox(key, counter):
    c = [counter & 0xFFFFFFFF, counter >> 32, 0, 0]
    k = list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & 0xFFFFFFFF, (p0 >> 32) ^ c[3] ^ k[1], p0 & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def dropout_factors(key, rows, cols):
    """Sixteen bits an element: kept at or above the threshold, and scaled by one over the share that is kept."""
    threshold = round(P * 65536)
    factors = np.zeros(rows * cols)
    for index in range(rows * cols):
        draw = (philox(key, index >> 3)[(index & 7) >> 1] >> (16 * (index & 1))) & 0xFFFF
        factors[index] = 65536 / (65536 - threshold) if draw >= threshold else 0
    return torch.tensor(factors.reshape(rows, cols))


def negatives_of(key):
    draws = [(philox(key, i >> 2)[i & 3] * ITEMS) >> 32 for i in range(T * R)]
    return torch.tensor(np.array(draws).reshape(T, R), dtype=torch.long)


def parameter(*shape, scale):
    value = torch.tensor((generator.standard_normal(shape) * scale).astype(np.float32).astype(np.float64))
    return value.requires_grad_()


def layer_norm(x):
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt(centred.pow(2).mean(-1, keepdim=True) + 1e-6)


def silu(x):
    return x * torch.sigmoid(x)


def bucket(difference):
    return int(min(max(math.trunc(math.log(max(abs(difference), 1)) / 0.301), 0), 128))


def normalize(x):
    return x / x.norm(dim=-1, keepdim=True).clamp(min=1e-6)


weights = {
    "items": parameter(ITEMS, D, scale=0.1),
    "positions": parameter(N, D, scale=0.1),
}
for l in range(BLOCKS):
    weights[f"blocks.{l}.uvqk"] = parameter(D, 4 * D, scale=0.3)
    weights[f"blocks.{l}.pos_w"] = parameter(1, 2 * N - 1, scale=0.1)
    weights[f"blocks.{l}.ts_w"] = parameter(1, 129, scale=0.1)
    weights[f"blocks.{l}.out"] = parameter(D, D, scale=0.3)
    weights[f"blocks.{l}.out_bias"] = parameter(1, D, scale=0.1)
item = torch.tensor(generator.integers(0, ITEMS, T))
target = torch.tensor(generator.integers(0, ITEMS, T))
offsets = np.cumsum([0] + LENGTHS)
time = np.concatenate([1_600_000_000 + np.cumsum(np.floor(np.exp(generator.uniform(0, 12, n)))) for n in LENGTHS]).astype(np.int64)
next_time = np.concatenate([np.append(time[a + 1 : b], time[b - 1] + 100) for a, b in zip(offsets, offsets[1:])])


def forward(step):
    place = torch.cat([torch.arange(n) for n in LENGTHS])
    x = math.sqrt(D) * weights["items"][item] + weights["positions"][place]
    x = x * dropout_factors(key_of(SEED, step, 0), T, D)
    for l in range(BLOCKS):
        p = {name: weights[f"blocks.{l}.{name}"] for name in ("uvqk", "pos_w", "ts_w", "out", "out_bias")}
        u, v, q, k = silu(layer_norm(x) @ p["uvqk"]).split(D, dim=-1)
        outputs = []
        for a, b in zip(offsets, offsets[1:]):
            n = b - a
            index = torch.tensor([[j - i + N - 1 for j in range(n)] for i in range(n)])
            buckets = torch.tensor([[bucket(int(next_time[a + i] - time[a + j])) for j in range(n)] for i in range(n)])
            heads = lambda m: m[a:b].reshape(n, H, A).transpose(0, 1)
            s = heads(q) @ heads(k).transpose(1, 2) + p["pos_w"][0][index] + p["ts_w"][0][buckets]
            o = (silu(s) / N * torch.tril(torch.ones(n, n))) @ heads(v)
            outputs.append(o.transpose(0, 1).reshape(n, D))
        gated = u * layer_norm(torch.cat(outputs)) * dropout_factors(key_of(SEED, step, 1 + l), T, D)
        x = gated @ p["out"] + p["out_bias"] + x
    negatives = negatives_of(key_of(SEED, step, 1 + BLOCKS))
    rows = normalize(weights["items"])
    ids = torch.cat([target[:, None], negatives], dim=1)
    logits = (normalize(x)[:, None, :] * rows[ids]).sum(-1) / TEMPERATURE
    masked = torch.cat([torch.zeros(T, 1, dtype=torch.bool), negatives == target[:, None]], dim=1)
    return -torch.log_softmax(logits.masked_fill(masked, -math.inf), dim=1)[:, 0].mean()


arrays = {f"before.{name}": value.detach().numpy().astype(np.float32) for name, value in weights.items()}
optimizer = torch.optim.AdamW(weights.values(), lr=LR, betas=(0.9, 0.98), eps=1e-8, weight_decay=0)
losses = []
for step in range(1, STEPS + 1):
    optimizer.zero_grad()
    loss = forward(step)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
for name, value in weights.items():
    arrays[f"after.{name}"] = value.detach().numpy().astype(np.float32)
arrays["losses"] = np.array(losses, dtype=np.float32)
for name, value in dict(item=item, target=target, offsets=offsets).items():
    arrays[name] = np.asarray(value).astype(np.int32)
arrays["time"], arrays["next_time"] = time, next_time.astype(np.int64)
save_file(arrays, str(HERE / "steps.safetensors"))
print(losses)
