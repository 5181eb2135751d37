"""A stand-in for the user's model that shares its parameters but nothing that a run could leave traces in.

Hooks, caches (``GCNConv(cached=True)``) and attributes that a forward pass sets live on the replica, so the
model comes back untouched whatever happens, also when two threads explain it at once.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from types import MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_iter
from torch_geometric.nn.models.rev_gnn import InvertibleModule

from .. import rules as _rules  # noqa: F401  (registers the rules that a run looks up)
from ..engine.portions import carries
from ..engine.process_state import random_state_kept
from ..engine.registry import module_rule
from ..engine.run import Run
from .call import ModelCall

Watch = Callable[[str, Any], None]


def replicate(model: Any, run: Run | None = None, watch: Watch | None = None) -> Any:
    """Copy the tree of modules, not the parameters; callables that are no modules are returned as they are.

    With a ``run``, the replica tells it the path of the module at work and hands modules whose type has a rule
    to it; ``watch(path, value)`` sees every module's output, and its first input that carries portions as
    ``path:input``.
    """
    if not isinstance(model, nn.Module) or isinstance(model, torch.jit.ScriptModule):
        return model
    copies: dict[int, nn.Module] = {}
    for module in model.modules():
        copies[id(module)] = module if isinstance(module, torch.jit.ScriptModule) else object.__new__(module.__class__)
    for module in model.modules():
        if "_orig_mod" in module._modules:  # made by torch.compile: compiled code hides its operations
            copies[id(module)] = copies[id(module._orig_mod)]
    for path, module in model.named_modules():
        copy = copies[id(module)]
        if copy is module or "_orig_mod" in module._modules:
            continue
        copy.__dict__ = {
            name: value if type(value) in _ATOMS else _reattach(value, copies)
            for name, value in module.__dict__.items()
        }
        if isinstance(copy, InvertibleModule):
            copy.disable = True  # it would free the memory of its inputs, which portions do not own
        copy.__dict__["_compiled_call_impl"] = None
        copy.__dict__["_buffers"] = {name: b if b is None else b.clone() for name, b in module._buffers.items()}
        if run is not None:
            _attach(copy, path, run, watch)
    return copies[id(model)]


def run_plain(model: Any, call: ModelCall, *replaced: tuple[Any, Any]) -> Any:
    """The model's own output, without leaving a trace."""
    with torch.no_grad(), random_state_kept():
        return call.run(replicate(model), *replaced)


def _reattach(value: Any, copies: dict[int, nn.Module]) -> Any:
    """The value with modules and bound methods of modules replaced by those of the replica, containers copied."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if (kind is OrderedDict or kind is dict) and not value:
        return kind()
    if isinstance(value, nn.Module):
        return copies.get(id(value), value)
    if kind is MethodType:
        return MethodType(value.__func__, copies.get(id(value.__self__), value.__self__))
    if kind in (list, tuple):
        return kind([_reattach(item, copies) for item in value])
    if isinstance(value, set | deque):
        return value.copy()
    if isinstance(value, dict):
        copy = value.copy()  # keeps the subclass
        for key, item in value.items():
            if type(item) not in _ATOMS:
                copy[key] = _reattach(item, copies)
        return copy
    return value


_ATOMS = frozenset({bool, int, float, str, type(None), Tensor, nn.Parameter})


def _attach(module: nn.Module, path: str, run: Run, watch: Watch | None) -> None:
    def enter(_module: nn.Module, args: Any, kwargs: Any) -> None:
        stack.append(run.module)
        run.module = path
        if watch is not None:
            watch(f"{path}:input", next((leaf for leaf in tree_iter((args, kwargs)) if carries(leaf)), None))

    def leave(_module: nn.Module, _args: Any, output: Any) -> None:
        run.module = stack.pop()
        if watch is not None:
            watch(path, output)

    stack: list[str] = []
    module.register_forward_pre_hook(enter, prepend=True, with_kwargs=True)
    module.register_forward_hook(leave)
    found = module_rule(module)
    if found is not None:
        module.forward = lambda *args, **kwargs: run.call_module(found, module, *args, **kwargs)
