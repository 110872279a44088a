"""The circuit of card.json in plain torch; `python circuit.py` compares it with the outputs that stand there.

Circuit()(prompt) takes a token matrix, one column per token and the query last, and returns those of all layers.
"""

import hashlib
import json
import pathlib
import struct

import torch


class Circuit(torch.nn.Module):
    def __init__(self, folder=pathlib.Path(__file__).parent):
        super().__init__()
        self.card = json.loads((folder / "card.json").read_text())
        raw = (folder / "circuit.safetensors").read_bytes()
        assert hashlib.sha256(raw).hexdigest() == self.card["sha256"], "these are other tensors than the card's"
        start = 8 + struct.unpack("<Q", raw[:8])[0]
        for name, entry in json.loads(raw[8:start]).items():
            if name != "__metadata__":
                first, last = entry["data_offsets"]
                numbers = torch.frombuffer(bytearray(raw[start + first : start + last]), dtype=torch.float32)
                self.register_buffer(name.replace(".", "_"), numbers.reshape(entry["shape"]).double())

    def attention(self, a, z):  # entry (i, j): the weight of source i for column j; the query is no source
        kernel, tau, rho, n = *(self.card[key] for key in ["kernel", "temperature", "diagonal_mix"]), z.shape[1] - 1
        g = z.T @ a @ z
        if kernel == "rbf":
            g = g + g.T - g.diagonal()[:, None] - g.diagonal()[None, :]
        g = g[:n] / (2 * tau if kernel == "rbf" else tau)
        if kernel == "linear":
            k = g / n
        elif kernel in ["softmax", "rbf"]:
            k = torch.softmax(g, 0)
        else:
            k = torch.relu(g) if kernel == "relu" else torch.where(g > 0, g + 1, g.clamp(max=0).exp())
            k = torch.nan_to_num(k / k.sum(0))
        return torch.cat([(1 - rho) * k + rho * torch.eye(n, n + 1), torch.zeros(1, n + 1)])

    def layer(self, z, layer):
        card, n, alpha = self.card, z.shape[1] - 1, self.card["step_sizes"][layer]
        one, two = (getattr(self, name if card["tied"] else f"layers_{layer}_{name}") for name in card["matrices"])
        if card["block"] == "linear":  # P, Q
            return z + alpha / n * one @ z @ torch.diag((torch.arange(n + 1) < n).double()) @ z.T @ two @ z
        update = alpha * one @ z @ self.attention(two, z)  # V, A
        if card["block"] == "dual":  # memory rows alone are written
            z, update[:-1] = z.clone(), 0
            z[-2, :-1] += card["gamma"] * update[-1, 1:]
        z = z + update
        return z if card["block"] == "dual" else torch.cat([z[:-2], card["gamma"] * z[-1:].roll(-1, 1) * (torch.arange(n + 1) < n), z[-1:]])

    def forward(self, z):
        layers = [z.double()]
        for layer in range(self.card["layers"]):
            layers.append(self.layer(layers[-1], layer))
        return torch.stack(layers)


if __name__ == "__main__":
    torch.set_default_dtype(torch.float64)
    circuit = Circuit()
    ours = torch.tensor(circuit.card["example"]["tokens"])
    print("largest difference", (circuit(ours[0]) - ours).abs().max().item())
