"""The module behind :func:`ictd.to_torch`; importing it imports PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch  # type: ignore[import-not-found,unused-ignore]

from ictd.blocks import Block, Floats
from ictd.contexts import Context
from ictd.errors import InputError

Module: Any = torch.nn.Module

__all__ = ["Attention", "AttentionBlock", "Layer"]

Tensor = Any


class Attention(Module):  # type: ignore[misc,unused-ignore]
    """Weights of a kernel: a module of its own, so that a hook sees them."""

    def __init__(self, kernel: str, temperature: float, diagonal_mix: float) -> None:
        super().__init__()
        self.kernel, self.temperature, self.diagonal_mix = kernel, temperature, diagonal_mix

    def forward(self, z: Tensor, A: Tensor, sources: Tensor, terminal: Tensor) -> Tensor:
        """(…, columns, columns): entry (i, j) is the weight of source i for column j."""
        left = sources[:, None]
        if self.kernel == "tabular":
            x = z[..., :-3, :]
            weights = (x[..., :, None] == x[..., None, :]).all(-3).to(z.dtype)
            found = self.normalised(weights * left)
        else:
            scores = z.mT @ A @ z
            if self.kernel == "rbf":
                own = scores.diagonal(dim1=-2, dim2=-1)
                scores = (scores + scores.mT - own[..., :, None] - own[..., None, :]) / 2
            if self.kernel != "relu":
                scores = scores / self.temperature
            if self.kernel in ("softmax", "rbf"):
                found = torch.softmax(scores.masked_fill(~left, -torch.inf), -2)
            elif self.kernel == "linear":
                found = scores * left / sources.sum()
            elif self.kernel == "relu":
                found = self.normalised(torch.relu(scores) * left)
            else:
                found = self.normalised(torch.where(scores > 0, scores + 1, scores.clamp(max=0).exp()) * left)
        rho = self.diagonal_mix
        mixed = (1 - rho) * found + rho * torch.diag(sources.to(z.dtype))
        return mixed.masked_fill(terminal, 0.0)

    @staticmethod
    def normalised(weights: Tensor) -> Tensor:
        """Columns divided by their sums; those of zeros stay."""
        sums = weights.sum(-2, keepdim=True)
        empty = sums == 0
        return weights / sums.masked_fill(empty, 1.0)

    def extra_repr(self) -> str:
        return f"{self.kernel}, temperature={self.temperature}, diagonal_mix={self.diagonal_mix}"


class Layer(Module):  # type: ignore[misc,unused-ignore]
    """One layer: Z ← Z + α V Z K, and what the block does to the memory rows."""

    def __init__(self, block: Block, step_size: float) -> None:
        super().__init__()
        self.block, self.gamma, self.step_size = block.block, block.gamma, step_size
        self.attention = Attention(block.kernel, block.temperature, block.diagonal_mix)

    def forward(self, z: Tensor, V: Tensor, A: Tensor, sources: Tensor, terminal: Tensor) -> tuple[Tensor, Tensor]:
        """The tokens after the layer, and its attention."""
        if self.block == "linear":  # V is P, A is Q, and scores are those of the tokens that M leaves.
            scores = torch.diag(sources.to(z.dtype)) @ z.mT @ A @ z / sources.sum()
            return z + self.step_size * V @ z @ scores, scores
        weights = self.attention(z, A, sources, terminal)
        update = self.step_size * V @ z @ weights
        if self.block == "dual":
            value = update[..., -1:, :]
            target = self.gamma * self.shifted(value, sources)
            return z + torch.cat([torch.zeros_like(z[..., :-2, :]), target, value], -2), weights
        z = z + update
        value = z[..., -1:, :]
        return torch.cat([z[..., :-2, :], self.gamma * self.shifted(value, sources), value], -2), weights

    @staticmethod
    def shifted(row: Tensor, sources: Tensor) -> Tensor:
        """Every source's successor."""
        return row.roll(-1, -1) * sources


class AttentionBlock(Module):  # type: ignore[misc,unused-ignore]
    """All layers of a block, with parameters ``V`` and ``A``: (rows, rows), or (L, rows, rows) where layers have their own.

    Called with ``features`` (…, n + 1, d) and ``rewards`` (…, n) of a trajectory whose last state is the query, or a prompt Z (…, rows,
    n + 1) alone, or an :class:`ictd.Context`, which may have several episodes and queries. Returns the values (…, L + 1, columns) of every
    column before the first and after every layer; of linear attention only the query's, which is the last, is a value.
    ``layers[l].attention`` is a module whose output is layer l's attention.
    """

    def __init__(
        self,
        block: Block,
        *,
        prompt: Callable[[Floats, Floats], Floats] | None = None,
        value_sign: float = 1.0,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        dtype = torch.float64 if dtype is None else dtype
        self.V = torch.nn.Parameter(torch.tensor(block.V, dtype=dtype))
        self.A = torch.nn.Parameter(torch.tensor(block.A, dtype=dtype))
        sizes = block.step_size if isinstance(block.step_size, tuple) else (block.step_size,) * block.layers
        sizes = sizes * block.layers if len(sizes) == 1 else sizes
        self.layers = torch.nn.ModuleList([Layer(block, size) for size in sizes])
        self.tied, self.value_sign = block.tied, value_sign
        self._linear = block.block == "linear"
        self._prompt = prompt

    def prompt(self, features: Any, rewards: Any) -> Tensor:
        """(…, rows, n + 1): the tokens of a trajectory."""
        if self._linear and self._prompt is not None:
            return torch.tensor(self._prompt(np.asarray(features), np.asarray(rewards)), dtype=self.V.dtype, device=self.V.device)
        x, r = (torch.as_tensor(part, dtype=self.V.dtype, device=self.V.device) for part in (features, rewards))
        if x.shape[-1] + 3 != self.V.shape[-1] or x.shape[-2] != r.shape[-1] + 1:
            expected = f"(…, n + 1, {self.V.shape[-1] - 3}) and (…, n)"
            raise InputError(f"features have shape {tuple(x.shape)} and rewards {tuple(r.shape)}, expected {expected}")
        last = torch.zeros_like(x[..., :1, 0])
        memory = x.new_zeros(*x.shape[:-1], 2)
        return torch.cat([x, torch.cat([r, last], -1)[..., None], memory], -1).mT

    def run(self, prompt: Any, rewards: Any = None) -> tuple[Tensor, Tensor]:
        """Tokens (…, L + 1, rows, columns) and attention (…, L, columns, columns)."""
        if isinstance(prompt, Context):
            roles = np.array(prompt.roles)
            x, r = (torch.tensor(part, dtype=self.V.dtype, device=self.V.device) for part in (prompt.features, prompt.rewards))
            z = torch.cat([x.mT, r[None], r.new_zeros(2, len(roles))])
        else:
            z = torch.as_tensor(prompt, dtype=self.V.dtype, device=self.V.device) if rewards is None else self.prompt(prompt, rewards)
            roles = np.array(["source"] * (z.shape[-1] - 1) + ["last"])
        sources, terminal = (torch.tensor(roles == role, device=z.device) for role in ("source", "terminal"))
        tokens, attention = [z], []
        for number, layer in enumerate(self.layers):
            V, A = (self.V, self.A) if self.tied else (self.V[number], self.A[number])
            z, weights = layer(z, V, A, sources, terminal)
            tokens.append(z)
            attention.append(weights)
        columns = z.shape[-1]
        return torch.stack(tokens, -3), torch.stack(attention, -3) if attention else z.new_zeros(*z.shape[:-2], 0, columns, columns)

    def forward(self, prompt: Any, rewards: Any = None) -> Tensor:
        """(…, L + 1, columns): the values after every layer."""
        return self.value_sign * self.run(prompt, rewards)[0][..., -1, :]

    def tokens(self, prompt: Any, rewards: Any = None) -> Tensor:
        """(…, L + 1, rows, columns): the token matrices Z_0, …, Z_L."""
        return self.run(prompt, rewards)[0]

    def attention(self, prompt: Any, rewards: Any = None) -> Tensor:
        """(…, L, columns, columns): entry (i, j) of a layer's is the weight of source i for column j."""
        return self.run(prompt, rewards)[1]
