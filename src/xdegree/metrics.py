"""How well scores find a known truth."""

import torch
from torch import Tensor


def auc(scores: Tensor, truth: Tensor) -> float:
    """Area under the ROC curve: the chance that a true item scores above a false one, a tie counting one half.

    Args:
        scores: [N], higher means more likely true.
        truth: [N], boolean or 0 and 1.
    """
    if scores.shape != truth.shape or scores.dim() != 1:
        raise ValueError(f"scores and truth are vectors of one length (got {list(scores.shape)}, {list(truth.shape)})")
    if scores.isnan().any():
        raise ValueError("scores hold NaN, which has no rank")
    true = truth.bool()
    positives, negatives = int(true.sum()), int((~true).sum())
    if not positives or not negatives:
        raise ValueError(
            f"AUC needs true and false items (got {positives} true and {negatives} false); leave this instance out"
        )
    ordered = scores.sort().values
    below, upto = torch.searchsorted(ordered, scores), torch.searchsorted(ordered, scores, right=True)
    ranks = (below + 1 + upto).double() / 2  # tied items share the mean of their ranks
    return float((ranks[true].sum() - positives * (positives + 1) / 2) / (positives * negatives))
