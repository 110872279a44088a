"""The circuit of card.json in plain torch; `python circuit.py` compares it with the outputs that stand there.

Circuit()(prompt) takes a token matrix, one column per token and the query last, and returns those of all layers.
"""
import hashlib, json, pathlib, struct

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
        kernel, rho, n = self.card["kernel"], self.card["diagonal_mix"], z.shape[1] - 1
        g = z.T @ a @ z
        if kernel == "rbf":
            g = (g + g.T - g.diagonal()[:, None] - g.diagonal()) / 2
        g = g[:n] / self.card["temperature"]
        if kernel == "linear":
            k = g / n
        elif kernel in ["softmax", "rbf"]:
            k = torch.softmax(g, 0)
        else:
            k = torch.relu(g) if kernel == "relu" else torch.where(g > 0, g + 1, g.clamp(max=0).exp())
            k = torch.nan_to_num(k / k.sum(0))
        return torch.cat([(1 - rho) * k + rho * torch.eye(n, n + 1).to(k), torch.zeros(1, n + 1)]).double()

    def layer(self, z, layer):
        card, alpha, sources = self.card, self.card["step_sizes"][layer], torch.arange(z.shape[1]) < z.shape[1] - 1
        v, a = (getattr(self, name if card["tied"] else f"layers_{layer}_{name}") for name in card["matrices"])
        if card["block"] == "linear":  # v is P, a is Q
            return z + alpha / int(sources.sum()) * v @ z @ torch.diag(sources.double()) @ z.T @ a @ z
        update = alpha * v @ z @ self.attention(a, z)
        if card["block"] == "dual":  # writes to the memory rows alone
            update[:-2], update[-2] = 0, card["gamma"] * update[-1].roll(-1) * sources
            return z + update
        z = z + update
        return torch.cat([z[:-2], card["gamma"] * z[-1:].roll(-1) * sources, z[-1:]])

    def forward(self, z):
        layers = [z.double()]
        for layer in range(self.card["layers"]):
            layers.append(self.layer(layers[-1], layer))
        return torch.stack(layers)


if __name__ == "__main__":
    circuit = Circuit()
    ours = torch.tensor(circuit.card["example"]["tokens"], dtype=torch.float64)
    print("largest difference", (circuit(ours[0]) - ours).abs().max().item())
