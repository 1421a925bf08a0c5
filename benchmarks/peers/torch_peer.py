"""Train the CVAE of our contextual problem in plain PyTorch, one replica after the other."""

import json
import time

import torch
from torch import nn

CHOICES, WIDTH, LEVELS, HIDDEN, LATENT, BATCH, KL_WEIGHT = 4, 20, 2, 32, 8, 256, 0.5
ROWS, REPLICAS, STEPS = 3000, 4, 150


class Modulated(nn.Module):
    """ReLU((1 + γ(r)) ⊙ (W h + b) + β(r))."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, HIDDEN)
        self.scale = nn.Parameter(torch.zeros(LEVELS, HIDDEN))
        self.shift = nn.Parameter(torch.zeros(LEVELS, HIDDEN))

    def forward(self, x: torch.Tensor, level: torch.Tensor) -> torch.Tensor:
        """``[B, I]`` and ``[B] -> [B, H]``."""
        return torch.relu((1 + self.scale[level]) * self.dense(x) + self.shift[level])


class CVAE(nn.Module):
    """Encoder and decoder with two modulated layers each."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.ModuleList([Modulated(CHOICES + WIDTH), Modulated(HIDDEN)])
        self.mean, self.log_deviation = nn.Linear(HIDDEN, LATENT), nn.Linear(HIDDEN, LATENT)
        self.decoder = nn.ModuleList([Modulated(LATENT + WIDTH), Modulated(HIDDEN)])
        self.head = nn.Linear(HIDDEN, CHOICES)

    def loss(
        self, context: torch.Tensor, action: torch.Tensor, level: torch.Tensor
    ) -> torch.Tensor:
        """The negative evidence lower bound."""
        chosen = nn.functional.one_hot(action, CHOICES).float()
        hidden = torch.cat([chosen, context], dim=1)
        for layer in self.encoder:
            hidden = layer(hidden, level)
        mean, log_deviation = self.mean(hidden), self.log_deviation(hidden)
        deviation = log_deviation.exp()
        hidden = torch.cat([mean + deviation * torch.randn_like(mean), context], dim=1)
        for layer in self.decoder:
            hidden = layer(hidden, level)
        fit = nn.functional.cross_entropy(self.head(hidden), action)
        divergence = ((mean**2 + deviation**2 - 1) / 2 - log_deviation).sum(dim=1).mean()
        return fit + KL_WEIGHT * divergence


def train(steps: int) -> None:
    model = CVAE()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.0)
    context = nn.functional.normalize(torch.randn(ROWS, WIDTH))
    action, level = torch.randint(CHOICES, (ROWS,)), torch.randint(LEVELS, (ROWS,))
    for _ in range(steps):
        row = torch.randint(ROWS, (BATCH,))
        optimizer.zero_grad()
        model.loss(context[row], action[row], level[row]).backward()
        optimizer.step()


def main() -> None:
    train(20)
    begin = time.perf_counter()
    for _ in range(REPLICAS):
        train(STEPS)
    seconds = time.perf_counter() - begin
    print(
        json.dumps({"version": torch.__version__, "steps_per_second": REPLICAS * STEPS / seconds})
    )


if __name__ == "__main__":
    main()
