"""Groups of nodes as the user gives them, checked and turned into shares of the input."""

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from .call import short


def ids_of(ids: Any, rows: int) -> tuple[Any, ...]:
    """What the user calls the nodes, in their order, from a list of them or a mapping from each to its row."""
    if isinstance(ids, Mapping):
        by_row = {row: name for name, row in ids.items()}
        missing = [row for row in range(rows) if row not in by_row]
        if missing or len(by_row) != rows:
            raise ValueError(f"ids must name every row from 0 to {rows - 1} once (rows without one: {short(missing)})")
        return tuple(by_row[row] for row in range(rows))
    found = tuple(ids.tolist() if isinstance(ids, Tensor) else ids)
    if len(found) != rows or len(set(found)) != rows:
        raise ValueError(f"ids must be {rows} different names, one for each node (got {len(found)})")
    return found


def by_ids(value: Any, ids: tuple[Any, ...] | None) -> Any:
    """The rows that ids mean, in lists at any depth; without ids, and for what is none, the value as it is."""
    if ids is None:
        return value
    row_of = {name: row for row, name in enumerate(ids)}

    def rows(one: Any) -> Any:
        if isinstance(one, list | tuple | set | frozenset):
            return [rows(item) for item in one]
        if isinstance(one, Tensor) or one is None or (isinstance(one, str) and one == "all" and one not in row_of):
            return one
        if one not in row_of:
            raise ValueError(f"{one!r} is none of the ids (they are {short(list(ids))})")
        return row_of[one]

    return rows(value)


def shares(groups: Any, x: Any, what: str = "node") -> Any:
    """The share of each feature that belongs to each group, ``[K, N]`` or ``[K, *x.shape]``, in x's dtype.

    For several types of nodes (x is a dict) a dict of shares: of masks, or of groups that are dicts themselves.
    """
    if isinstance(x, Mapping):
        return _shares_by_type(groups, x, what)
    if isinstance(groups, Tensor):
        return _mask(groups, x)
    if isinstance(groups, str | bytes | dict) or not isinstance(groups, Iterable):
        raise TypeError(f"groups must be lists of {what} ids or a mask [K, N] (got {type(groups).__name__})")
    ids = [_ids(group, number, x.shape[0], what) for number, group in enumerate(groups)]
    if not ids:
        raise ValueError("groups is an empty list; give at least one group (an empty group is [[]])")
    mask = x.new_zeros(x.shape[0], len(ids)).t()  # rows first, see `portions.rows`
    lengths = torch.tensor([len(group) for group in ids])
    mask[
        torch.repeat_interleave(torch.arange(len(ids)), lengths),
        torch.tensor(list(chain.from_iterable(ids)), dtype=torch.long),
    ] = 1
    return mask


def _shares_by_type(groups: Any, x: Mapping[Any, Tensor], what: str) -> dict[Any, Tensor]:
    """Groups of several types: ``[{"paper": [0, 3]}, {"author": [1]}]`` or ``{"paper": mask, "author": mask}``."""
    example = f'[{{"{next(iter(x))}": [0]}}]' if isinstance(next(iter(x)), str) else f"[{{{next(iter(x))}: [0]}}]"
    named = [groups] if isinstance(groups, Mapping) else groups
    if isinstance(named, Tensor | str) or not all(isinstance(group, Mapping) for group in named):
        raise TypeError(f"with several types of {what}s, groups must be dicts by type, {example} (got {groups!r})")
    unknown = {kind for group in named for kind in group} - set(x)
    if unknown:
        raise ValueError(f"groups names the types {sorted(map(str, unknown))}, but the model was given {list(x)}")
    if not isinstance(groups, Mapping):
        if not len(groups):
            raise ValueError(f"groups is an empty list; give at least one group: {example}")
        return {kind: shares([group.get(kind, []) for group in groups], value, what) for kind, value in x.items()}
    if not all(isinstance(mask, Tensor) for mask in groups.values()):
        raise TypeError(f"a dict by type must hold masks [K, {what}s]; groups of ids are a list of dicts, {example}")
    counts = {mask.shape[0] for mask in groups.values()}
    if len(counts) != 1:
        raise ValueError(f"masks of all types must have the same number of groups K (got {sorted(counts)})")
    [k] = counts
    return {
        kind: shares(groups[kind], value, what) if kind in groups else value.new_zeros(k, len(value))
        for kind, value in x.items()
    }


def number_of(share: Any) -> int:
    """K, the number of groups."""
    return len(next(iter(share.values())) if isinstance(share, Mapping) else share)


def some(share: Any, cut: slice) -> Any:
    """The shares of some of the groups."""
    return {kind: part[cut] for kind, part in share.items()} if isinstance(share, Mapping) else share[cut]


def _ids(group: Any, number: int, count: int, what: str) -> list[int]:
    if isinstance(group, Tensor):
        group = group.reshape(-1).tolist()
    if isinstance(group, str | bytes) or not isinstance(group, Iterable):
        raise TypeError(
            f"group {number} must be a list of {what} ids (got {group!r}); groups is a list of lists: [[0], [4, 7]]"
        )
    group = [item.item() if hasattr(item, "item") else item for item in group]
    if any(isinstance(item, bool) or not isinstance(item, int) for item in group):
        masks = all(isinstance(item, bool) for item in group)
        advice = (
            "give truth values as one tensor, a mask [K, N]" if masks else "groups is a list of lists: [[0], [4, 7]]"
        )
        raise TypeError(f"group {number} must hold integer {what} ids (got {short(group)}); {advice}")
    outside = [item for item in group if not 0 <= item < count]
    if outside:
        raise ValueError(f"group {number} names {what}s {short(outside)}, but ids go from 0 to {count - 1}")
    if len(set(group)) != len(group):
        twice = sorted({item for item in group if group.count(item) > 1})
        raise ValueError(f"group {number} names {what}s {short(twice)} more than once; a {what} is in a group or not")
    return group


def _mask(mask: Tensor, x: Tensor) -> Tensor:
    expected = f"[K, {x.shape[0]}] or [K, {', '.join(map(str, x.shape))}]"
    if mask.dtype != torch.bool and not mask.is_floating_point():
        raise TypeError(
            f"a mask of groups must be bool or float (got {mask.dtype}); node ids go into lists, or use mask.bool()"
        )
    if mask.shape[1:] not in (x.shape[:1], x.shape):
        raise ValueError(f"a mask of groups must have the shape {expected} (got {list(mask.shape)})")
    if mask.shape[0] == 0:
        raise ValueError(f"a mask of groups needs at least one group: {expected} with K ≥ 1 (got {list(mask.shape)})")
    if mask.device != x.device:
        raise ValueError(
            f"the mask of groups is on {mask.device}, the node features on {x.device}; put them on one device"
        )
    mask = mask.to(x.dtype)
    if not bool(((mask >= 0) & (mask <= 1)).all()):
        raise ValueError("shares in a mask of groups must lie between 0 and 1")
    return mask


def split(x: Tensor, share: Tensor) -> Tensor:
    """X^γ = diag(m) X for all groups at once, ``[K, *x.shape]``."""
    share = share.reshape(*share.shape, *[1] * (x.dim() + 1 - share.dim()))
    return (x.unsqueeze(1) * share.movedim(0, 1)).movedim(1, 0)
