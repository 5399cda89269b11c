"""Separates two moons with a small network in PyTorch, on a GPU where there is one."""
import math

import torch


def moons(count, generator):
    angle = torch.rand(count, generator=generator) * math.pi
    upper = torch.stack([angle.cos(), angle.sin()], dim=1)
    lower = torch.stack([1 - angle.cos(), 0.5 - angle.sin()], dim=1)
    label = (torch.arange(count) % 2).float()
    points = torch.where(label[:, None] == 0, upper, lower)
    return points + 0.1 * torch.randn(points.shape, generator=generator), label


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    x, label = (part.to(device) for part in moons(512, generator))
    test_x, test_label = (part.to(device) for part in moons(512, generator))
    network = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.Tanh(), torch.nn.Linear(32, 32),
                                  torch.nn.Tanh(), torch.nn.Linear(32, 1)).to(device)
    optimiser = torch.optim.SGD(network.parameters(), lr=0.5)
    measure = torch.nn.BCEWithLogitsLoss()
    print(f"torch {torch.__version__} on {device}")
    first = None
    for number in range(1, 1001):
        optimiser.zero_grad()
        loss = measure(network(x)[:, 0], label)
        loss.backward()
        optimiser.step()
        first = first if first is not None else loss.item()
        if number % 200 == 0:
            print(f"step {number:4}  loss {loss.item():.4f}", flush=True)
    with torch.no_grad():
        accuracy = ((network(test_x)[:, 0] > 0) == (test_label == 1)).float().mean().item()
    print(f"loss {first:.4f} -> {loss.item():.4f}, accuracy {accuracy:.3f}")
    if not (loss.item() < first / 4 and accuracy > 0.97):
        raise SystemExit("the training did not work")


if __name__ == "__main__":
    main()
