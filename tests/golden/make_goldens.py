"""Regenerates the golden tensors: one HSTU, FuXi-alpha (also with FuXi-gamma's time function) and SASRec block (textbook and Meta's) each, forward and every gradient, by PyTorch
autograd in double precision, stored as float32 (times int64) in <model>.safetensors beside this file.

    pip install torch numpy safetensors && python tests/golden/make_goldens.py

Needed only to regenerate; the tests read the stored files. Written from the formulas, padded and slow on purpose.
Letters: T tokens, D width, h heads, a = dqk, v = dv, N longest sequence the model is built for.
"""

import math
import pathlib

import numpy as np
import torch
from safetensors.numpy import save_file

HERE = pathlib.Path(__file__).parent
LENGTHS = [17, 0, 1, 40, 6, 23]
D, H, A, V, N, M = 24, 2, 8, 12, 64, 24
T = sum(LENGTHS)
EPS = 1e-6
DAY = 86_400
torch.manual_seed(20260513)
torch.set_default_dtype(torch.float64)


def parameter(*shape, scale=0.3):
    return (torch.randn(*shape) * scale).requires_grad_()


def layer_norm(x, eps=EPS):
    centred = x - x.mean(-1, keepdim=True)
    return centred / torch.sqrt(centred.pow(2).mean(-1, keepdim=True) + eps)


def rms_norm(x):
    return x / torch.sqrt(x.pow(2).mean(-1, keepdim=True) + EPS)


def silu(x):
    return x * torch.sigmoid(x)


def bucket(difference):
    return int(min(max(math.trunc(math.log(max(abs(difference), 1)) / 0.301), 0), 128))


def make_times():
    """Non-decreasing times with ties, small gaps and gaps of years; the query time is the next event's."""
    times, query_times = [], []
    generator = np.random.default_rng(7)
    for n in LENGTHS:
        gaps = np.floor(np.exp(generator.uniform(0, 18, n + 1))).astype(np.int64) * (generator.uniform(size=n + 1) > 0.2)
        t = 1_600_000_000 + np.cumsum(gaps)
        times += t[:n].tolist()
        query_times += t[1:].tolist()
    return times, query_times


def sequences():
    start = 0
    for n in LENGTHS:
        yield start, n
        start += n


def causal(n):
    return torch.tril(torch.ones(n, n))


def relative(pos_w, ts_w, times, query_times, start, n):
    """Position and time terms [n, n] of one sequence; three time weights are those of alpha * gamma^(T^beta)."""
    index = torch.tensor([[j - i + N - 1 for j in range(n)] for i in range(n)], dtype=torch.long)
    if ts_w.numel() == 3:
        gaps = [[abs(query_times[start + i] - times[start + j]) / DAY for j in range(n)] for i in range(n)]
        gap = torch.tensor(gaps)
        beta, gamma = torch.nn.functional.softplus(ts_w[1]), torch.sigmoid(ts_w[2])
        power = torch.where(gap > 0, torch.where(gap > 0, gap, torch.ones_like(gap)) ** beta, torch.zeros_like(gap))
        return pos_w[index], ts_w[0] * gamma**power
    buckets = torch.tensor(
        [[bucket(query_times[start + i] - times[start + j]) for j in range(n)] for i in range(n)], dtype=torch.long
    )
    return pos_w[index], ts_w[buckets]


def heads_of(x, start, n, width):
    return x[start : start + n].reshape(n, H, width).transpose(0, 1)


def hstu(x, p, times, query_times):
    y = silu(layer_norm(x) @ p["w"])
    u, v, q, k = y.split([H * V, H * V, H * A, H * A], dim=-1)
    outputs = []
    for start, n in sequences():
        if n == 0:
            continue
        pos, ts = relative(p["pos_w"], p["ts_w"], times, query_times, start, n)
        s = heads_of(q, start, n, A) @ heads_of(k, start, n, A).transpose(1, 2) + pos + ts
        o = (silu(s) / N * causal(n)) @ heads_of(v, start, n, V)
        outputs.append(o.transpose(0, 1).reshape(n, H * V))
    return (u * layer_norm(torch.cat(outputs))) @ p["wo"] + p["bo"] + x


def fuxi(x, p, times, query_times):
    y = silu(rms_norm(x) @ p["w"])
    u, v, q, k = y.split([3 * H * V, H * V, H * A, H * A], dim=-1)
    outputs = []
    for start, n in sequences():
        if n == 0:
            continue
        pos, ts = relative(p["pos_w"], p["ts_w"], times, query_times, start, n)
        vh = heads_of(v, start, n, V)
        s = heads_of(q, start, n, A) @ heads_of(k, start, n, A).transpose(1, 2)
        channels = [(m * causal(n)) @ vh for m in (pos.expand(H, n, n), ts.expand(H, n, n), silu(s) / N)]
        outputs.append(torch.cat(channels, dim=-1).transpose(0, 1).reshape(n, 3 * H * V))
    o = (u * rms_norm(torch.cat(outputs))) @ p["w0"] + p["b0"] + x
    z = rms_norm(o)
    h1, h3 = (z @ p["w13"]).split([M, M], dim=-1)
    return (silu(h1) * h3) @ p["w2"] + o


def sasrec(x, p, times, query_times):
    def norm(x, name):
        return layer_norm(x) * p[f"{name}_gain"] + p[f"{name}_shift"]

    q, k, v = (norm(x, "norm1") @ p["wqkv"] + p["bqkv"]).split([H * A, H * A, H * V], dim=-1)
    outputs = []
    for start, n in sequences():
        if n == 0:
            continue
        s = heads_of(q, start, n, A) @ heads_of(k, start, n, A).transpose(1, 2) / math.sqrt(A)
        weights = torch.softmax(s.masked_fill(causal(n) == 0, -math.inf), dim=-1)
        outputs.append((weights @ heads_of(v, start, n, V)).transpose(0, 1).reshape(n, H * V))
    x = torch.cat(outputs) @ p["wo"] + p["bo"] + x
    hidden = torch.relu(norm(x, "norm2") @ p["w1"] + p["b1"])
    return hidden @ p["w2"] + p["b2"] + x


def sasrec_meta(x, p, times, query_times):
    """As in Meta's public recipes; written from the formulas in src/nn/sasrec-meta.ts."""
    query = layer_norm(x, 1e-8)
    q = query @ p["wq"] + p["bq"]
    k, v = (x @ p["wkv"] + p["bkv"]).split([H * A, H * V], dim=-1)
    outputs = []
    for start, n in sequences():
        if n == 0:
            continue
        s = heads_of(q, start, n, A) @ heads_of(k, start, n, A).transpose(1, 2) / math.sqrt(A)
        weights = torch.softmax(s.masked_fill(causal(n) == 0, -math.inf), dim=-1)
        outputs.append((weights @ heads_of(v, start, n, V)).transpose(0, 1).reshape(n, H * V))
    middle = layer_norm(torch.cat(outputs) @ p["wo"] + p["bo"] + query, 1e-8)
    hidden = torch.relu(middle @ p["w1"] + p["b1"])
    return hidden @ p["w2"] + p["b2"] + middle


MODELS = {
    "hstu": (hstu, dict(w=(D, 2 * H * V + 2 * H * A), pos_w=(2 * N - 1,), ts_w=(129,), wo=(H * V, D), bo=(D,))),
    "fuxi": (
        fuxi,
        dict(
            w=(D, 4 * H * V + 2 * H * A), pos_w=(2 * N - 1,), ts_w=(129,), w0=(3 * H * V, D), b0=(D,),
            w13=(D, 2 * M), w2=(M, D),
        ),
    ),
    "sasrec": (
        sasrec,
        dict(
            norm1_gain=(D,), norm1_shift=(D,), wqkv=(D, 2 * H * A + H * V), bqkv=(2 * H * A + H * V,), wo=(H * V, D),
            bo=(D,), norm2_gain=(D,), norm2_shift=(D,), w1=(D, M), b1=(M,), w2=(M, D), b2=(D,),
        ),
    ),
    # Last, so that the others draw the numbers they always drew.
    "fuxi_power": (
        fuxi,
        dict(
            w=(D, 4 * H * V + 2 * H * A), pos_w=(2 * N - 1,), ts_w=(3,), w0=(3 * H * V, D), b0=(D,),
            w13=(D, 2 * M), w2=(M, D),
        ),
    ),
    "sasrec_meta": (
        sasrec_meta,
        dict(
            wq=(D, H * A), bq=(H * A,), wkv=(D, H * A + H * V), bkv=(H * A + H * V,), wo=(H * V, D), bo=(D,),
            w1=(D, M), b1=(M,), w2=(M, D), b2=(D,),
        ),
    ),
}

times, query_times = make_times()
for name, (block, shapes) in MODELS.items():
    parameters = {key: parameter(*shape) for key, shape in shapes.items()}
    # Rounded to float32 first, so that the test starts from exactly the numbers PyTorch saw.
    for value in parameters.values():
        value.data = value.data.float().double()
    x = torch.randn(T, D).float().double().requires_grad_()
    dy = torch.randn(T, D).float().double()
    y = block(x, parameters, times, query_times)
    y.backward(dy)
    tensors = {"x": x, "y": y, "dy": dy, "dx": x.grad}
    for key, value in parameters.items():
        tensors[key] = value
        tensors[f"d_{key}"] = value.grad
    arrays = {key: value.detach().numpy().astype(np.float32) for key, value in tensors.items()}
    arrays["offsets"] = np.cumsum([0] + LENGTHS).astype(np.int32)
    arrays["times"] = np.array(times, dtype=np.int64)
    arrays["query_times"] = np.array(query_times, dtype=np.int64)
    meta = dict(D=D, heads=H, a=A, v=V, N=N, m=M, eps=EPS)
    save_file(arrays, str(HERE / f"{name}.safetensors"), metadata={k: repr(v) for k, v in meta.items()})
    print(name, {k: v.shape for k, v in arrays.items()})
