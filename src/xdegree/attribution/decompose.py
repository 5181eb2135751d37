"""What each group of nodes contributes: the model's own forward pass, run on portions."""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from ..engine.masked_rows import Masks
from ..engine.options import DEFAULT, Options
from ..engine.portions import LostPortionsError, Portions, carries, leaves, settle, target_of, total_of
from ..engine.process_state import Memory, budget
from ..engine.registry import MissingRuleError
from ..engine.run import NeedsDense, Run
from ..engine.sparse_rows import ActiveRows, Entries, NeedsWhole, Singles, SparseRows
from ..engine.torch_private import tree_flatten, tree_map, tree_unflatten
from ..locality.prepared import Model, PreparedCall
from ..model_call.call import ModelCall, find_batch, mapped_tensors, model_call
from ..model_call.callables import as_module
from ..model_call.groups import by_ids, ids_of, number_of, shares, some
from ..model_call.shadow_model import check_call, shadow_of
from ..model_call.split_points import Of, Path, Source, find_source, located, mean_features
from .decomposition import Decomposition, added, beyond_the_last, is_sound, joined
from .phantoms import Portion, locate_portions, warn_of_infinite, warn_of_phantoms, warn_of_the_whole

WORKING_SET = 12
"""Portions of the largest size that are alive at one moment, with room to spare: operands, results, shares."""

AT_ONCE = 2**27
"""Bytes of the largest portions of one pass, generously guessed, above which more groups only make it slower: memory
that does not fit into caches is fetched, and large blocks are asked of the system again and again."""


def decompose(
    model: Model,
    *args: Any,
    groups: Any,
    of: Of = "node",
    start: Any = None,
    output: Any = None,
    probes: Iterable[str] = (),
    baseline: Any = "zero",
    steps: int = 1,
    options: Options | None = None,
    memory: Memory = None,
    ids: Any = None,
    model_kwargs: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> Decomposition:
    """Split a prediction into what each group of nodes contributes and the rest.

    Calls ``model(*args, **kwargs)`` as it is; the first argument holds the node features. All groups go
    through the model in one pass, or in as few passes as the memory budget allows.

    Args:
        model: a PyG model or any callable that computes with PyTorch, or what `prepare` returned.
        *args: the model's arguments, or a PyG ``Data`` in their place.
        groups: lists of node ids; or a mask ``[K, N]`` of truth values or shares in 0..1; or a mask
            ``[K, N, F]`` of single features. With several types of nodes or edges (``x_dict``): dicts by type,
            ``[{"paper": [0, 3]}, {"author": [1]}]``, or a dict of masks.
        of: what the groups consist of: ``"node"`` (or ``"feature"``, the same with a mask ``[K, N, F]``);
            ``"edge"``, the messages along edges in all layers; ``"edge_feature"``, the rows of ``edge_attr`` or
            ``edge_weight``. Edges are named by their place in ``edge_index``.
        start: where the rows of nodes are, if not in ``x``: a module (its name or itself), whose output is split; the
            name of a parameter, a buffer or an argument; a tensor; a list of these; or a dict of them by type of node.
            Found automatically where there is only one candidate.
        output: which part of the output is decomposed, for models that return several, as in `explain`; all by default.
        probes: names of modules whose output portions are wanted too (``"lin2:input"`` for what goes in).
        baseline: what features are measured from: ``"zero"``; ``"mean"``, the mean feature vector (columns that do not
            vary keep 0); or a tensor. A group's target is then what its features are beyond the baseline.
        steps: in how many steps the way from the baseline to the features is split. One is a decomposition with its
            interactions; with many, contributions become integrated gradients and add up to the output beyond that of
            the baseline. Each step is a pass in which every operation gives what it loses without its increment,
            whatever the options; only attention over neighbors stays as given, unless ``Options(attention="split")``.
        options: choices among rules.
        memory: budget in bytes for the portions (or as text, ``"2GB"``); by default a quarter of what is free.
        ids: what you call the nodes, as in `explain`; groups are then lists of ids.
        model_kwargs: keyword arguments of the model whose names are taken by this function.
        **kwargs: all other keyword arguments of the model.
    """
    if groups is None:
        raise TypeError("groups is None; name what is asked about: groups=[[0], [4, 7]]")
    options = chosen_options(options, of)
    given = {**kwargs, **(model_kwargs or {})}
    prepared = PreparedCall.of(model, args, given, start=start) if isinstance(model, PreparedCall) else None
    if prepared is not None:
        prepared = prepared if output is None else prepared.of_part(output)
        model, call, source = prepared.model, prepared.whole_call, prepared.source(of)
    else:
        call = replace(model_call(model, args, given), part=output)
        model = as_module(model)
        check_call(model, call)
        call = located(model, call, start)
        source = find_source(call, of)
    groups = by_ids(groups, None if ids is None else ids_of(ids, len(source.rows)))
    found = decompose_source(model, call, on_path(source, baseline, steps, call), groups, probes, options, memory)
    if prepared is not None:
        prepared.confirm_output(found.total)
    warn_of_infinite(found.total)
    return found


def chosen_options(options: Options | None, of: Of) -> Options:
    """The user's, or the default; features of edges often enter attention alone, so for them it is split."""
    if options is None:
        return EDGE_FEATURES if of == "edge_feature" else DEFAULT
    return Options.of(options)


EDGE_FEATURES = Options(attention="split")


def on_path(source: Source, baseline: Any, steps: Any, call: ModelCall) -> Source:
    """A source whose features are measured from a baseline, in steps; the mean of a batch is that of each graph."""
    if isinstance(baseline, str) and baseline == "mean" and source.what == "node":
        batch = find_batch(call)
        if batch is not None and len(batch) == len(source.rows):
            baseline = mean_features(source.rows, batch)
    path = Path.of(baseline, steps, source.rows)
    if path.is_trivial:
        return source
    return source.on(path)


def path_of(prepared: PreparedCall, baseline: Any, steps: Any, of: Of = "node") -> Path:
    """The way from the baseline to the features of a prepared call; says what is wrong with either."""
    if isinstance(baseline, str) and baseline == "mean" and prepared.sample is not prepared.call:
        raise ValueError(
            'baseline="mean" would read all features in the store; compute their mean once and give it as a tensor [F]'
        )
    return on_path(prepared.source(of), baseline, steps, prepared.call).path


def path_options(options: Options, path: Path) -> Options:
    """In several steps each is small: what it adds is what would be lost without it."""
    if path.steps == 1:
        return options
    last: Any = {"activation": "target-last", "product": "target-last"}
    return replace(options, **last, bias="background", bound="none")


def decompose_source(
    model: Any,
    call: ModelCall,
    source: Source,
    groups: Any,
    probes: Iterable[str],
    options: Options,
    memory: Memory,
) -> Decomposition:
    """`decompose` after its arguments have been understood."""
    if source.path.steps > 1 and source.path.step == source.path.steps:
        few = path_options(options, source.path)
        steps = (source.on(replace(source.path, step=step)) for step in range(1, source.path.steps))
        found = [_in_passes(model, call, step, groups, probes, few, memory) for step in (*steps, source)]
        return added(found)
    return _in_passes(model, call, source, groups, probes, options, memory)


def _in_passes(
    model: Any,
    call: ModelCall,
    source: Source,
    groups: Any,
    probes: Iterable[str],
    options: Options,
    memory: Memory,
) -> Decomposition:
    """One step, in as many passes as the memory asks for."""
    share = source_shares(source, groups)
    if source.beside_plain_nodes:
        share = share.mask(source.rows).to(source.rows) if isinstance(share, Entries) else share
        share = mapped_tensors(lambda s: torch.cat([s, s.new_zeros(1, *s.shape[1:])]), share)
    names = _known(model, probes)
    cuts = _chunks(number_of(share), memory, model, call, lambda: survey(model, call, source, options).largest)
    found = joined([one_pass(model, call, source, some(share, cut), names, options) for cut in cuts])
    found = beyond_the_last(found) if source.beside_plain_nodes else found

    def locate(group: int) -> list[Portion]:
        return locate_portions(model, call, source, some(share, slice(group, group + 1)), options)

    parts = [found, *found.probes.values()]
    if options.bound == "none":  # else there are none
        warn_of_phantoms([part.total for part in parts], [part.target for part in parts], locate)
        if options.bias != "background":  # which gives biases to no group
            warn_of_the_whole(found.total, found.target, share)
    return found


def one_pass(
    model: Any,
    call: ModelCall,
    source: Source,
    share: Any,
    names: tuple[str, ...],
    options: Options,
    sparse: bool = True,
    careful: bool = False,
) -> Decomposition:
    """All groups at once, with sparse targets unless the model writes into them in place."""
    try:
        run = Run(number_of(share), options, sparse=sparse, careful=careful, states=call.random_states)
        found = _run(model, call, source, share, names, run)
    except NeedsDense:
        return one_pass(model, call, source, share, names, options, sparse=False)
    if careful or all(map(is_sound, (found, *found.probes.values()))):
        return found
    return one_pass(model, call, source, share, names, options, sparse=False, careful=True)


def _run(model: Any, call: ModelCall, source: Source, share: Any, names: tuple[str, ...], run: Run) -> Decomposition:
    """Operations without a rule are all found before the error is raised."""
    found: dict[str, Decomposition] = {}

    def keep(path: str, value: Any) -> None:
        """Note a probe as it is now; the model may write into it later."""
        if path in names:
            with run.aside():
                found[path] = _result(value, run.groups, f"the probe {path}", copy=True)

    shadow = shadow_of(model, run, keep if names else None)
    replaced = source.start(run, shadow, share)
    try:
        with run.active():
            output = call.run(shadow, *replaced)
            run.check((output, _before(output)))
    except MissingRuleError as error:
        raise MissingRuleError(survey(model, call, source, run.options).missing or error.missing) from None
    source.finish()
    unreached = [name for name in names if name not in found]
    if unreached:
        raise ValueError(f"probes names {unreached}, which the model did not call in this forward pass")
    logits = _before(output)
    with run.aside():
        before = None if logits is None else _result(logits, run.groups, "what the last softmax is applied to")
        output = tree_map(run.split_softmax, output)
        whole = _result(output, run.groups, "the model's output", found)
    warn_of_numbers(model, call, source, run, output)
    return replace(whole, logits=before, products=frozenset(run.products - run.attending))


def _before(output: Any) -> Any:
    """What the last step of the model was applied to, if that is a softmax or a sigmoid."""
    leaves, _ = tree_flatten(output)
    return leaves[0].before if len(leaves) == 1 and isinstance(leaves[0], Portions) else None


@dataclass(frozen=True)
class AtRows:
    """What single nodes contribute to some rows of the output, stored where it can be other than zero."""

    total: Any
    """The model's output."""
    target: SparseRows
    """``[K, rows, …]``."""
    probe: SparseRows | None = None
    """The same in a hidden representation."""
    logits: Tensor | None = None
    """What the last softmax or sigmoid was applied to, if the target is there and not in the output."""
    products: frozenset[str] = frozenset()
    """As in `Decomposition`."""


def decompose_at(
    model: Any,
    call: ModelCall,
    source: Source,
    groups: Singles | Masks | Entries,
    rows: Tensor,
    probe: str,
    options: Options,
    active: ActiveRows,
    logits: bool,
) -> AtRows:
    """What single nodes or groups contribute to some rows of the output, without the work for the others.

    Raises `NeedsWhole` where the model does something else than pass messages and treat rows one by one.
    """
    run = Run(len(groups), options, active_rows=active, states=call.random_states)
    seen: list[Any] = []

    def keep(path: str, value: Any) -> None:
        if path == probe:
            seen.append(value)

    shadow = shadow_of(model, run, keep if probe else None)
    if isinstance(shadow, nn.Module):
        active.attach(shadow)
    replaced = source.start(run, shadow, groups)
    try:
        with run.active():
            output = call.run(shadow, *replaced)
            settle((output, seen))
    except NeedsDense:
        raise NeedsWhole from None
    if not isinstance(output, Tensor) or not output.dim() or (probe and not seen):
        raise NeedsWhole
    hidden = _at(seen[-1], rows, len(output)) if probe else None
    before = _before(output) if logits else None
    shown = output if before is None else before
    above = None if before is None else before.total
    found = AtRows(total_of(output), _at(shown, rows), hidden, above, frozenset(run.products - run.attending))

    def locate(pair: int) -> list[Portion]:
        group = groups.mask_of(int(found.target.group[pair]), source.rows)
        return locate_portions(model, call, source, source_shares(source, group), options)

    if options.bound == "none":
        warn_of_phantoms(found.total if above is None else above, found.target.values, locate)
    warn_of_numbers(model, call, source, run, output)
    return found


def _at(value: Any, rows: Tensor, size: int | None = None) -> SparseRows:
    """The sparse target of some rows."""
    pairs = value.sparse if carries(value) else None
    if pairs is None or pairs.rest is not None or (size is not None and pairs.size != size):
        raise NeedsWhole
    found = pairs.wanted(rows)
    if not bool(found.values.isfinite().all()) and bool(total_of(value)[rows].isfinite().all()):
        raise NeedsWhole  # where a pass over everything looks after each operation
    return found


@contextmanager
def whole_survey(model: Any, call: ModelCall, source: Source) -> Iterator[None]:
    """Make an error about missing rules name the user's own arguments, not those of a part that was cut out."""
    try:
        yield
    except MissingRuleError as error:
        raise MissingRuleError(survey(model, call, source).missing or error.missing) from None


def survey(model: Any, call: ModelCall, source: Source, options: Options | None = None) -> Run:
    """Run the model with no groups at all: which operations portions meet, and which of them lack a rule."""
    run = Run(0, options or Options(), collect=True, states=call.random_states)
    shadow = shadow_of(model, run)
    replaced = source.start(run, shadow, source_shares(source, None))
    try:
        with run.active():
            run.missing = run.reaching(call.run(shadow, *replaced))
    except Exception:
        if not run.missing:  # else it may be a consequence of what is missing
            raise
    return run


def warn_of_numbers(model: Any, call: ModelCall, source: Source, run: Run, output: Any) -> None:
    """Say which Python numbers, lists and arrays were taken from portions, if the output changes with them.

    Those that are only logged, or decide a branch, change nothing.
    """
    if not run.numbers:
        return
    again = Run(0, run.options, states=call.random_states, nudge=NUDGE)
    shadow = shadow_of(model, again)
    replaced = source.start(again, shadow, source_shares(source, None))
    try:
        with again.active():
            other = call.run(shadow, *replaced)
        pairs = zip(tree_flatten(output)[0], tree_flatten(other)[0], strict=True)
        same = all(_equal(total_of(a), total_of(b)) for a, b in pairs)
    except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError):
        same = False
    if not same:
        warnings.warn(
            "the model takes Python numbers, lists or arrays out of tensors that carry portions"
            f" ({', '.join(run.numbers)}) and its output depends on them. They are taken as given: what nodes"
            " contribute by them is not seen. Keep them tensors (no .item(), float(), .tolist(), .numpy()) to see it",
            stacklevel=2,
        )


NUDGE = 1e-3
"""By how much numbers are changed to see whether the output depends on them."""


def _equal(a: Any, b: Any) -> bool:
    return torch.equal(a.nan_to_num(), b.nan_to_num()) if isinstance(a, Tensor) and isinstance(b, Tensor) else True


def source_shares(source: Source, groups: Any) -> Any:
    """The groups' shares of what a source splits; of no groups at all for None."""
    rows = source.rows
    if isinstance(groups, Entries):
        return groups
    if groups is None:
        return mapped_tensors(lambda x: x.new_zeros(0, len(x)), rows)
    return shares(groups, rows, source.what)


def _result(
    output: Any,
    groups: int,
    what: str,
    probes: Mapping[str, Decomposition] | None = None,
    copy: bool = False,
) -> Decomposition:
    leaves, shape = tree_flatten(output)
    if not any(carries(leaf) for leaf in leaves):
        raise LostPortionsError(
            f"{what} carries no portions: they got lost on the way (the values were copied out of the tensors) or the"
            " features do not reach it. Where they only enter attention or several softmaxes, which are taken as given"
            ' by default, options=Options(attention="split") splits them'
        )
    totals = [total_of(leaf) for leaf in leaves]
    targets = [_leaf_target(leaf, groups) for leaf in leaves]
    if copy:
        totals, targets = ([x.clone() if isinstance(x, Tensor) else x for x in part] for part in (totals, targets))
    return Decomposition(tree_unflatten(totals, shape), tree_unflatten(targets, shape), probes or {})


def _leaf_target(leaf: Any, groups: int) -> Any:
    """The target of one part of an output; what is no float tensor has none."""
    return target_of(leaf, groups) if isinstance(leaf, Tensor) and leaf.is_floating_point() else None


def _known(model: Any, probes: Iterable[str]) -> tuple[str, ...]:
    names = (probes,) if isinstance(probes, str) else tuple(probes)
    known = [name for name, _ in model.named_modules()] if isinstance(model, nn.Module) else []
    for name in names:
        if not isinstance(name, str) or name.removesuffix(":input") not in known:
            raise ValueError(f"probes names {name!r}, but the model's modules are {[n for n in known if n]}")
    return names


def _chunks(groups: int, memory: Memory, model: object, call: ModelCall, largest: Callable[[], int]) -> list[slice]:
    """Cut K groups so that one pass stays within the budget.

    A generous guess spares small jobs the survey, which costs a forward pass.
    """
    allowed, guess = budget(memory, next(leaves(call.x)).device), call.plain_size(model)
    size = max(32, AT_ONCE // max(1, guess))
    if min(groups, size) * WORKING_SET * guess > allowed:
        size = max(1, min(size, allowed // max(1, WORKING_SET * largest())))
    passes = max(1, -(-groups // size))
    size = -(-groups // passes)  # passes of the same size
    return [slice(start, min(start + size, groups)) for start in range(0, groups, size)] or [slice(0, 0)]
