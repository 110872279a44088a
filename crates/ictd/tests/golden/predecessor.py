"""Reference gradients of the predecessor's prediction by automatic differentiation in float64.

Writes predecessor.json beside this file: for both activations, tied and untied layers, one prompt, random P and Q, the
prediction -Z_L[last, last] of Z <- Z + (1/n) P Z M act(Z^T Q Z), and its derivatives by every entry of P and Q and by the query's
features as PyTorch computes them. Needs PyTorch:

    pip install torch && python crates/ictd/tests/golden/predecessor.py
"""

import itertools
import json
import pathlib

import torch

torch.set_default_dtype(torch.float64)
D, N, L, GAMMA = 2, 5, 3, 0.9
ROWS = 2 * D + 1


def predict(activation, pairs, context, query):
    column = torch.cat([query, torch.zeros(D + 1)])
    z = torch.cat([context, column[:, None]], dim=1)
    mask = torch.eye(N + 1)
    mask[N, N] = 0
    for p, q in pairs:
        scores = z.T @ q @ z
        if activation == "softmax":
            scores = torch.softmax(scores, dim=1)
        z = z + p @ z @ mask @ scores / N
    return -z[-1, -1]


def case(activation, tied, generator):
    def uniform(*shape):
        return 2 * torch.rand(*shape, generator=generator) - 1

    # Two transitions are the same, so that distinct columns are fewer than columns.
    features, successors, rewards = uniform(N, D), uniform(N, D), uniform(N)
    features[3], successors[3], rewards[3] = features[1], successors[1], rewards[1]
    context = torch.cat([features.T, GAMMA * successors.T, rewards[None]])
    query = uniform(D).requires_grad_()
    own = [(uniform(ROWS, ROWS).requires_grad_(), uniform(ROWS, ROWS).requires_grad_()) for _ in range(1 if tied else L)]
    value = predict(activation, own * L if tied else own, context, query)
    value.backward()
    flat = lambda tensors: [x for tensor in tensors for x in tensor.detach().flatten().tolist()]
    return {
        "activation": activation,
        "tied": tied,
        "features": features.tolist(),
        "successors": successors.tolist(),
        "rewards": rewards.tolist(),
        "query": query.detach().tolist(),
        "params": flat(x for pair in own for x in pair),
        "value": value.item(),
        "by_params": flat(x.grad for pair in own for x in pair),
        "by_query": query.grad.tolist(),
    }


generator = torch.Generator().manual_seed(0)
cases = [case(activation, tied, generator) for activation, tied in itertools.product(["linear", "softmax"], [True, False])]
path = pathlib.Path(__file__).with_suffix(".json")
path.write_text("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
