"""The reference of bench-serve.mjs: the same HSTU with the same weights in PyTorch behind FastAPI and uvicorn, as a Python
team would write it: bias by table lookups, attention as dense products, one request at a time per worker thread.

    python scripts/bench_serve_torch.py weights.safetensors store/items.safetensors

T events of the history, D width, h heads, N = rows of the position table.
"""

import socket
import sys

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from safetensors.torch import load_file

HEADS = 2
TEMPERATURE = 0.05
weights = load_file(sys.argv[1])
originals = load_file(sys.argv[2])["value"].tolist()
dense = {original: i for i, original in enumerate(originals)}
items = torch.nn.functional.normalize(weights["items"], dim=-1)
D = items.shape[1]
N = weights["positions"].shape[0]
BLOCKS = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("blocks."))
HV = weights["blocks.0.out"].shape[0]
HA = (weights["blocks.0.uvqk"].shape[1] - 2 * HV) // 2


class Event(BaseModel):
    item: int
    time: int


class Question(BaseModel):
    history: list[Event]
    k: int
    at: int


def norm(x):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], eps=1e-6)


def heads(x):
    return x.view(x.shape[0], HEADS, -1).transpose(0, 1)


@torch.inference_mode()
def recommend(question):
    ids = torch.tensor([dense[event.item] for event in question.history])
    times = torch.tensor([event.time for event in question.history])
    n = len(ids)
    x = weights["items"][ids] * D**0.5 + weights["positions"][:n]
    index = torch.arange(n)
    position = index[None, :] - index[:, None] + N - 1
    query = torch.cat([times[1:], torch.tensor([question.at])])
    gap = (query[:, None] - times[None, :]).abs().clamp(min=1).double()
    bucket = (gap.log() / 0.301).long().clamp(0, 128)
    mask = torch.ones(n, n).tril() / N
    for block in range(BLOCKS):
        name = f"blocks.{block}."
        y = torch.nn.functional.silu(norm(x) @ weights[name + "uvqk"])
        u, v, q, k = y.split([HV, HV, HA, HA], dim=-1)
        bias = weights[name + "pos_w"].view(-1)[position] + weights[name + "ts_w"].view(-1)[bucket]
        scores = torch.nn.functional.silu(heads(q) @ heads(k).transpose(1, 2) + bias) * mask
        o = (scores @ heads(v)).transpose(0, 1).reshape(n, HV)
        x = (u * norm(o)) @ weights[name + "out"] + weights[name + "out_bias"].view(-1) + x
    state = torch.nn.functional.normalize(x[-1], dim=-1) / TEMPERATURE
    logits = items @ state
    logits[ids] = -torch.inf
    top = logits.topk(question.k)
    return [{"item": str(originals[i]), "score": s} for i, s in zip(top.indices.tolist(), top.values.tolist())]


app = FastAPI()


@app.post("/v1/recommend")
def answer(question: Question):
    return {"items": recommend(question)}


if __name__ == "__main__":
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]} serves PyTorch {torch.__version__}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
