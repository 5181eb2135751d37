"""The graph that the examples on Cora work on, or a small generated one in its place."""

import torch
from torch_geometric.data import Data

from xdegree.datasets.planetoid import planetoid

TOPICS = ("theory", "reinforcement learning", "genetic algorithms", "neural networks", "probabilistic methods",
          "case based", "rule learning")  # fmt: skip


def citations(generated: bool = False, seed: int = 0) -> Data:
    """Cora (from $XDEGREE_DATA, else downloaded), or a generated network of papers that cite their own topic."""
    if not generated:
        try:
            return planetoid("Cora")
        except FileNotFoundError as error:
            raise SystemExit(f"{error}. Without the data: --generated") from None
    topics, papers, words = len(TOPICS), 140, 70
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(papers) % topics
    cites = torch.rand(papers, papers, generator=generator) < torch.where(y[:, None] == y, 0.15, 0.01)
    cites = (cites | cites.t()).fill_diagonal_(False)
    own = torch.arange(words) % topics == y[:, None]
    x = (torch.rand(papers, words, generator=generator) < torch.where(own, 0.4, 0.05)).float()
    part = torch.arange(papers) // topics % 4
    masks = {"train_mask": part < 2, "val_mask": part == 2, "test_mask": part == 3}
    return Data(x=x / x.sum(1, keepdim=True).clamp(min=1), edge_index=cites.nonzero().t().contiguous(), y=y, **masks)


def a_clear_case(logits: torch.Tensor, data: Data) -> int:
    """The paper of the test set that a model is right about and surest of, among those with several citations."""
    cited = torch.bincount(data.edge_index[1], minlength=data.num_nodes)
    right = (logits.argmax(-1) == data.y) & data.test_mask & (cited >= 3)
    sure = logits.softmax(-1).amax(-1).masked_fill(~right, -1)
    return int(sure.argmax())
