"""HSTU training steps in PyTorch, for `turbogr bench paper --peer <python>`: the same batch, model, loss and optimiser as our step.

Reads a JSON request from standard input and prints one JSON object: milliseconds of a step, padded as the public reference
computes it (every sequence at the length of the longest, bias and scores of size n x n), and as a loop over the sequences.

B sequences, n longest sequence, D width, h heads, L blocks, R negatives.
"""

import json
import math
import statistics
import sys
import time

import torch
import torch.nn.functional as F


class Block(torch.nn.Module):
    def __init__(self, d, heads, longest):
        super().__init__()
        self.heads, self.width, self.n = heads, d // heads, longest + 1
        self.uvqk = torch.nn.Parameter(torch.randn(d, 4 * d) * 0.02)
        self.pos = torch.nn.Parameter(torch.randn(2 * self.n - 1) * 0.02)
        self.ts = torch.nn.Parameter(torch.randn(129) * 0.02)
        self.out = torch.nn.Linear(d, d)

    def forward(self, x, buckets, mask, dropout):  # x [B, n, D], buckets [B, n, n], mask [B, n, n]
        size, n, d = x.shape
        u, v, q, k = F.silu(F.layer_norm(x, (d,), eps=1e-6) @ self.uvqk).chunk(4, dim=-1)
        q, k, v = (t.view(size, n, self.heads, self.width) for t in (q, k, v))
        places = torch.arange(n)
        bias = self.pos[places[None, :] - places[:, None] + self.n - 1] + self.ts[buckets]  # [B, n, n]
        scores = torch.einsum("bihd,bjhd->bhij", q, k) + bias[:, None]
        weights = F.silu(scores) / self.n * mask[:, None]
        o = torch.einsum("bhij,bjhd->bihd", weights, v).reshape(size, n, d)
        return self.out(F.dropout(u * F.layer_norm(o, (d,), eps=1e-6), dropout)) + x


class Hstu(torch.nn.Module):
    def __init__(self, request):
        super().__init__()
        d = request["d"]
        self.dropout, self.negatives = request["dropout"], request["negatives"]
        self.items = torch.nn.Embedding(request["items"], d)
        torch.nn.init.trunc_normal_(self.items.weight, std=0.02)
        self.positions = torch.nn.Embedding(request["longest"] + 1, d)
        blocks = [Block(d, request["heads"], request["longest"]) for _ in range(request["blocks"])]
        self.blocks = torch.nn.ModuleList(blocks)

    def loss(self, batch):
        item, target, time_of, next_time, real = batch  # each [B, n]
        size, n = item.shape
        x = self.items(item) * math.sqrt(self.items.embedding_dim) + self.positions(torch.arange(n))
        x = F.dropout(x, self.dropout) * real[..., None]
        gap = (next_time[:, :, None] - time_of[:, None, :]).abs().clamp(min=1).float()
        buckets = (gap.log() / 0.301).long().clamp(0, 128)
        mask = torch.tril(torch.ones(n, n))[None] * real[:, None, :]
        for block in self.blocks:
            x = block(x, buckets, mask, self.dropout)
        states = F.normalize(x[real > 0], dim=-1)  # [T, D]
        positives = target[real > 0]
        drawn = torch.randint(self.items.num_embeddings, (len(positives), self.negatives))
        rows = F.normalize(self.items(torch.cat([positives[:, None], drawn], 1)), dim=-1)  # [T, 1 + R, D]
        logits = torch.einsum("td,trd->tr", states, rows) / 0.05
        same = torch.cat([torch.zeros(len(positives), 1, dtype=torch.bool), drawn == positives[:, None]], 1)
        logits = logits.masked_fill(same, -math.inf)
        return F.cross_entropy(logits, torch.zeros(len(positives), dtype=torch.long), reduction="sum")


def sequences(request):
    """The sequences of the batch, each a tuple of [1, n] tensors."""
    offsets = request["offsets"]
    columns = [torch.tensor(request[name]) for name in ("item", "target", "time", "next_time")]
    for start, end in zip(offsets, offsets[1:]):
        yield tuple(column[None, start:end] for column in columns) + (torch.ones(1, end - start),)


def padded(parts):
    """All sequences in one batch at the length of the longest."""
    longest = max(part[0].shape[1] for part in parts)
    grown = [tuple(F.pad(column, (0, longest - column.shape[1])) for column in part) for part in parts]
    return tuple(torch.cat(columns) for columns in zip(*grown))


def milliseconds(request, batches):
    torch.manual_seed(1)
    model = Hstu(request)
    tokens = len(request["item"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.98), weight_decay=0)
    times = []
    for step in range(1 + request["steps"]):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        for batch in batches:
            (model.loss(batch) / tokens).backward()
        optimizer.step()
        if step > 0:
            times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def main():
    request = json.load(sys.stdin)
    torch.set_num_threads(request["threads"])
    parts = list(sequences(request))
    answer = {
        "torch": torch.__version__,
        "padded_ms": milliseconds(request, [padded(parts)]),
        "loop_ms": milliseconds(request, parts),
    }
    print(json.dumps(answer))


main()
