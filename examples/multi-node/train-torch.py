"""PyTorch's DistributedDataParallel: every rank has the whole network, gradients are averaged in a ring.

  mlenv run --nodes 3 IMAGE -- python3 train-torch.py
  torchrun --nproc-per-node 2 train-torch.py
"""
import os

import torch
import torch.distributed as dist

import common


class Network(torch.nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.weights = torch.nn.ParameterList(torch.nn.Parameter(torch.from_numpy(one)) for one in weights)

    def forward(self, x):
        w = self.weights
        return torch.relu(torch.relu(x @ w[0] + w[1]) @ w[2] + w[3]) @ w[4]


def main():
    options = common.options()
    torch.set_num_threads(1)  # sums in the same order on every machine
    torch.use_deterministic_algorithms(True)
    world = int(os.environ.get("WORLD_SIZE", "1"))
    rank = int(os.environ.get("RANK", "0"))
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(device)
    if world > 1:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")

    step, weights = common.newest_checkpoint()
    print(f"rank {rank} of {world} begins at step {step}", flush=True)
    network = Network(weights).to(device)
    if world > 1:
        begin = torch.tensor(step, device=device)
        dist.broadcast(begin, 0)  # rank 0's checkpoint is everybody's; its weights follow by DDP
        step = int(begin)
        network = torch.nn.parallel.DistributedDataParallel(network)
        # DDP takes gradients in another order from its second step on, and so adds in another one. It
        # does that before the first step that counts, or a restart would show in the last bits.
        network(torch.zeros(1, 16, device=device)).sum().backward()
    optimiser = torch.optim.SGD(network.parameters(), lr=common.RATE)
    loss = torch.zeros((), device=device)

    def now():
        return [one.detach().cpu().numpy() for one in network.parameters()]

    for step in range(step, options.steps):
        x, y = (torch.from_numpy(part).to(device) for part in common.batch(step, rank, world))
        optimiser.zero_grad()
        loss = ((network(x) - y) ** 2).mean()
        loss.backward()
        optimiser.step()
        loss = loss.detach()
        if world > 1:
            dist.all_reduce(loss)
            loss /= world
        common.note_samples(options, step, rank, world)
        common.after_step(options, step + 1, loss.item(), now, rank == 0)
    common.finish(rank, world, options.steps, loss.item(), now())
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
