"""Write docs/rules.md from the registry of rules and the reasons below.

``make coverage`` runs it; with ``--check`` it only says whether the page is up to date. A rule without a reason, or a
reason without a rule, is an error.
"""

import inspect
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from pages import write_page

import xdegree.rules  # noqa: F401  (registers them)
from xdegree.engine.registry import CARRY_NOTHING, FACTORIES, RULES

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "rules.md"

PREFACE = """\
# Rules

Written by `make coverage` from the rules in `src/xdegree/rules/` and their reasons in `docs/write_rules.py`; do not
edit.

Every operation computes its *total* as ever. A rule says which part of that is the *target*, γ, the portion of the
group that is asked about; the *background*, β, is the rest, so that γ + β is the total by construction. Two
principles of the paper decide everything that it does not spell out:

1. a portion comes from the same portion below it;
2. interaction between the two portions is little; terms that cannot be attributed to one portion go to the background.

## What the paper decides

`Options.paper()` follows it to the letter. By default activations are taken in both orders and bounded by the output,
attention weights are taken as given, and mixed terms of products are halved, so that a group and all the rest add up
to the prediction. What the tables below say of ReLU, softmax and products is the paper's choice.

- **Linear maps** act on each portion by itself.
- **A bias** belongs to neither portion and is shared by magnitude, |γ| : |β|, entry by entry.
- **ReLU and LeakyReLU**: the target goes first, γ' = f(γ); the background gets what is left.
- **Max pooling**: both portions are taken at the rows that win in the total.
- **Softmax**: the weights are those of the total, shared by exp|γ| : exp|β|.
- **Attention × value**: target × target is the target's; the three mixed products are background.

## Where it is silent

- **A product of two portions** follows attention × value: target × target, the rest is background. It is the strict
  reading of the second principle. The price: a single group gets little of a product whose other factor it has no part
  in, as in gates, bilinear decoders and edge weights behind the first layer. `Options(product="share")`, the default,
  halves the mixed terms instead. Softmax attention that is split stays as it is: its rule gives even the empty group a
  share.
- **Division.** A denominator normalises; it is the total's and scales both portions alike. Over a plain numerator
  the denominator's portions share the quotient by magnitude.
- **Normalisation.** Mean and offset are linear and a bias; the deviation is the total's, as with division. Degrees
  by which GCN layers normalise are treated alike.
- **Sort, top-k, median.** The order is the model's own decision; both portions are taken at the places that it
  chose, as in max pooling.
- **Gates** (GLU, LSTM, GRU): the gate is an activation, the gating a product.
- **Softmax as an output.** The paper's rule to the letter: exp|0| = 1, so the empty group too has a share of a
  probability. In attention that share is multiplied with an empty value and vanishes. Where the value carries no
  portions at all (when the features of edges are explained) it would stay, so it is taken off: nothing contributes
  0.
- **Attention taken as given.** By the paper's rule a single node seldom has much of an attention weight, so most of
  the value that is passed on counts as background. `Options(attention="whole")`, the default, takes the weights as they
  are, like those of a GCN: a group contributes what its values carry, and all nodes together contribute everything.
- **log_softmax** is no softmax but a telescoping sum like an activation, with −log C as its constant.
- **A constant f(0) ≠ 0** of an activation, as ½ of a sigmoid, comes from neither portion: it is a bias.
- **A gate instead of an order.** `Options(activation="gate")` gives the target of an activation γ·(f(T) − f(0))/T, T
  being the total: each portion passes as the total does. It is linear in γ, so contributions of disjoint groups add up,
  and where T = 0 nothing passes. Functions of several numbers (norms, log_softmax) have no such quotient and take both
  orders.
- **Units that are 0.** By every order of the telescoping sum a ReLU whose output is 0 can have portions of +5 and −5;
  a normalisation behind it that scales by 1,000 makes thousands of them, where the model itself computes small numbers.
  `Options(bound="output")`, the default, clips each portion of an activation to lie between 0 and what the unit
  put out, f(T) − f(0). The interval is symmetric about its half, so a group and the rest still add up where they did.
  For ReLU every order, and the gate, then is the same rule: γ clipped to 0 … T where T is positive, 0 elsewhere.
  Linear maps, norms and log_softmax have no units that are 0 and stay as they are. Without a bound, contributions of
  more than ten times the largest value of the model raise a warning that names the module.
- **Proportional functions.** Where f(γ) alone might leave the domain of f or overflow (a logarithm, a root, an
  exponential, 1/x), f of the total is shared by |γ| : |β|.
- **Ties** of a maximum are shared equally among the rows that reach it up to rounding, so that scores do not depend
  on the numbering of the nodes; `Options(ties="first")` takes the first, as the authors' code does.
- **0/0 goes to the background.** A bias that meets zeros (a dead unit, a node without neighbors) is background. The
  law that all nodes together contribute everything can therefore fail at such rows, by what becomes of that bias.
- **Plain operands.** A tensor that carries no portions scales or shifts those that do; concatenated to them it is
  background.
- **In-place operations and buffers.** They are computed out of place and written into both halves. A buffer that
  the model makes is plain until a portion is written into it.
- **Truth values, positions and shapes carry nothing**: which branch was taken is the model's decision, no
  contribution.
- **Messages along edges** (`of="edge"`): in every layer the messages along a group's edges are all target, whatever
  they were made of; self-loops that a layer adds are background.
"""

_MOVES = "Entries are moved or copied, not changed, so each portion moves along with them."
_WRITES = "What is overwritten is gone, of both portions; what is written brings its own."
_TELESCOPE = "The first principle: f of the target is the target's, the remainder is background; f(0) is a constant."
_LINEAR = "It is linear, so it acts on each portion by itself; a constant that is added is a bias."
_PRODUCT = "As attention × value: what needs both portions belongs to neither alone."
_WINNERS = "As max pooling: who wins is decided in the total, and both portions are taken there."
_SCALE = "The deviation normalises both portions alike, as a denominator does; mean and offset are linear and a bias."
REASONS = {
    "activation": _TELESCOPE,
    "magnitude": "f(γ) alone might leave the domain of f or overflow; shares of f(total) never do.",
    "log_sigmoid": _TELESCOPE,
    "rrelu": _TELESCOPE,
    "prelu": _TELESCOPE,
    "power": "Whole powers ≥ 1 take any sign and vanish at 0, so they telescope; others might leave their domain.",
    "scatter_add": _LINEAR,
    "index_add": _LINEAR,
    "scatter_reduce": "Sums and means are linear; maxima are won in the total; a product is target × … × target.",
    "extreme": _WINNERS,
    "maximum": _WINNERS,
    "index_reduce": "The same as scatter_reduce, with whole rows.",
    "sparse_reduce": "The same as writing the messages out and reducing them.",
    "segment_reduce": "The same as scatter_reduce, with consecutive rows.",
    "solve": "Linear in the right-hand side; what portions do in the matrix has no rule.",
    "matmul": "Linear in one portion; of two portions a sum of products.",
    "affine": "Linear, with the paper's share of the bias.",
    "affine_rare": "Linear, with the paper's share of the bias.",
    "add": _LINEAR,
    "rsub": _LINEAR,
    "trilinear": _PRODUCT,
    "convolution": "Linear in its input, with the paper's share of the bias.",
    "softmax": "The paper's rule; σ(|γ| − |β|) is the same share without overflow.",
    "dot_product_attention": "Its three steps, each by its own rule: product, softmax, attention × value.",
    "log_softmax": _TELESCOPE,
    "windows": _LINEAR,
    "max_windows": _WINNERS,
    "batch_norm": "In eval mode an affine map; with the statistics of the batch as the other norms.",
    "layer_norm": _SCALE,
    "group_norm": _SCALE,
    "rms_norm": _SCALE,
    "degree_norm": "Degrees normalise both portions alike; as a product an edge would need its own way back.",
    "mul": _PRODUCT,
    "div": "A denominator normalises both portions alike.",
    "cross": _PRODUCT,
    "lerp": "The same as its difference, product and sum.",
    "xlogy": "The same as its logarithm and product.",
    "glu": "The gate is an activation, the gating a product.",
    "addcmul": "The same as the product and the sum.",
    "addcdiv": "The same as the quotient and the sum.",
    "structural": _MOVES,
    "t": _MOVES,
    "squeeze": _MOVES,
    "permute": _MOVES,
    "roll": _MOVES,
    "lazy_conjugate": "A note on a tensor is no portion; lost in silence it would falsify the total itself.",
    "view": _MOVES,
    "expand": _MOVES,
    "repeat": _MOVES,
    "to_copy": "Another float type carries portions as well; integers cannot, which is an error.",
    "concatenate": "Side by side, both portions alike; a plain part is background.",
    "reduce_linear": _LINEAR,
    "index_select": _MOVES,
    "index": _MOVES,
    "masked_select": _MOVES,
    "trace": _LINEAR,
    "block_diag": _MOVES,
    "as_strided": _MOVES,
    "gather": _MOVES,
    "take": _MOVES,
    "sort_aggregation": "The order is the model's own decision; graphs with fewer nodes are filled up with zeros.",
    "where": "Which branch is taken is the model's decision; a plain branch is background.",
    "masked_fill": _WRITES,
    "masked_scatter": _WRITES,
    "index_fill": _WRITES,
    "copy": _WRITES,
    "fill": _WRITES,
    "index_put": _WRITES,
    "index_copy": _WRITES,
    "embedding": _MOVES,
    "scatter": _WRITES,
    "write_slice": _WRITES,
    "pad": "What is padded is a constant: no group contributes it.",
    "statistic": _TELESCOPE,
    "var_mean": "The variance telescopes, the mean is linear.",
    "product": _PRODUCT,
    "distance": _TELESCOPE,
    "ranked": _WINNERS,
    "median": _WINNERS,
}


def page() -> str:
    """The whole page."""
    keys: dict[Any, list[str]] = {}
    for key, function in RULES.items():
        keys.setdefault(function, []).append(_name(key))
    names = {function.__name__ for function in keys}
    if names != set(REASONS):
        without, spare = sorted(names - set(REASONS)), sorted(set(REASONS) - names)
        raise SystemExit(f"docs/write_rules.py: rules without a reason {without}, reasons without a rule {spare}")
    lines = [PREFACE, "## All rules"]
    for family, rules in groupby(sorted(keys, key=_place), _family):
        lines += ["", f"### {family}", "", "| rule | operations | what it does | reason |", "| --- | --- | --- | --- |"]
        for function in rules:
            ops = ", ".join(f"`{op}`" for op in sorted(keys[function]))
            lines.append(f"| `{function.__name__}` | {ops} | {_summary(function)} | {REASONS[function.__name__]} |")
    lines += [
        "",
        "## Operations that carry nothing",
        "",
        ", ".join(f"`{_name(op)}`" for op in sorted(CARRY_NOTHING, key=_name)) + ".",
        "",
        "Of these only the shape is taken: " + ", ".join(f"`{_name(op)}`" for op in sorted(FACTORIES, key=_name)) + ".",
        "",
    ]
    return "\n".join(lines)


def _family(function: Any) -> str:
    return function.__module__.rpartition(".")[2]


def _place(function: Any) -> tuple[str, int]:
    """Where a rule stands in the source: the order of the registry depends on who was registered again."""
    return _family(function), inspect.unwrap(function).__code__.co_firstlineno


def _name(key: Any) -> str:
    if isinstance(key, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return str(key).removeprefix("aten.")
    return key.__name__


def _summary(function: Any) -> str:
    first = " ".join((function.__doc__ or "").strip().split("\n\n")[0].split())
    return first.replace("|", "\\|")


def main(argv: list[str]) -> int:
    """Write the page, or with --check compare it."""
    text = page()
    return write_page(PAGE, text, f"{len(REASONS)} rules", argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
