"""An operation of one's own, the rule that decomposes it, and the laws that check the rule.

Run it with ``python examples/add_a_rule.py``.
"""

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv

import xdegree
from xdegree.testing import check_laws


@torch.library.custom_op("example::squash", mutates_args=())
def squash(x: Tensor) -> Tensor:
    """x / (1 + |x|), as if it came from a library written in another language."""
    return x / (1 + x.abs())


class Net(nn.Module):
    """A model that uses it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GCNConv(3, 2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Scores of two classes for every node."""
        return squash(self.conv(x, edge_index))


def main() -> None:
    """Meet the error, add the rule, check its laws, explain."""
    torch.manual_seed(0)
    x, edge_index = torch.randn(4, 3), torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    model = Net().eval()
    try:
        xdegree.explain(model, x, edge_index, index=2)
    except xdegree.MissingRuleError as error:
        print(error, end="\n\n")

    # The rule: the target first, the background is the remainder, as the paper does it for ReLU.
    @xdegree.rule(torch.ops.example.squash)
    def squash_rule(call: xdegree.Call, x: xdegree.Portions) -> Tensor:  # noqa: ARG001
        return squash(x.target)

    check_laws(squash, x.double())
    print("the laws hold")
    print(xdegree.explain(model, x, edge_index, index=2))


if __name__ == "__main__":
    main()
