"""A stand-in for the user's model that shares its parameters but nothing that a run could leave traces in.

Hooks, caches (``GCNConv(cached=True)``), buffers, plain tensors, containers and objects that a forward pass may write
to live on the shadow, so the model comes back untouched whatever happens, also when two threads explain it at once.
"""

import copy
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.inspector import Inspector
from torch_geometric.nn.models.rev_gnn import InvertibleModule

from .. import rules as _rules  # noqa: F401  (registers the rules that a run looks up)
from ..engine.portions import carries, leaves
from ..engine.process_state import OwnDraws, RandomStates
from ..engine.registry import module_rule, op_schema
from ..engine.run import Run
from ..engine.torch_private import DispatchMode, OpOverload, inner_module, trains, tree_iter
from .call import ModelCall, short
from .callables import leads_to, rebuilt

Watch = Callable[[str, Any], None]
Sizes = Mapping[int, Tensor]
"""The size of each row of the values of a pass, by the number of the operation."""


def shadow_of(model: Any, run: Run | None = None, watch: Watch | None = None, caches: bool = False) -> Any:
    """Copy the tree of modules, not the parameters; a function is made anew around copies of what it refers to.

    Without ``caches``, layers forget features that they keep from one call to the next (``SGConv(cached=True)``): they
    are computed anew from the arguments, which `check_caches` shows to give the same.

    With a ``run``, the shadow tells it the path of the module at work and hands modules whose type has a rule
    to it; ``watch(path, value)`` sees every module's output, and its first input that carries portions as
    ``path:input``.
    """
    if isinstance(model, torch.jit.ScriptModule):
        return model
    return _shadow(model, {}, run, watch, caches) if isinstance(model, nn.Module) else _variable(model, {})


def _shadow(
    model: nn.Module, copies: dict[int, Any], run: Run | None, watch: Watch | None, caches: bool = False
) -> Any:
    """A tree of modules; ``copies`` are by the identity of the original, as `copy.deepcopy` keeps its memo."""
    named = [(path, module) for path, module in model.named_modules() if id(module) not in copies]
    for _, module in named:
        copies[id(module)] = module if isinstance(module, torch.jit.ScriptModule) else object.__new__(module.__class__)
    for _, module in named:
        if (compiled := inner_module(module)) is not None:  # compiled code hides its operations
            copies[id(module)] = copies[id(compiled)]
    for path, module in named:
        made = copies[id(module)]
        if made is module or inner_module(module) is not None:
            continue
        late = [name for name in ("_forward_hooks", "_forward_pre_hooks") if module.__dict__.get(name)]
        made.__dict__ = {
            name: value if type(value) in _SHARED else _copied(value, copies)
            for name, value in module.__dict__.items()
            if name not in late
        }  # hooks may refer to what the model has beside modules, so their turn is later
        made.__dict__.update({name: _copied(module.__dict__[name], copies) for name in late})
        if isinstance(made, InvertibleModule):
            made.disable = True  # it would free the memory of its inputs, which portions do not own
        made.__dict__["_compiled_call_impl"] = None
        if not caches:
            made.__dict__.update(dict.fromkeys(_warm(module)))
        if run is not None:
            _attach(made, path, run, watch)
    return copies[id(model)]


def run_plain(model: Any, call: ModelCall, *replaced: tuple[Any, Any]) -> Any:
    """The model's own output, without leaving a trace."""
    with torch.no_grad(), Plain(call.random_states):
        return call.run(shadow_of(model), *replaced)


def _warm(module: nn.Module) -> list[str]:
    """The attributes in which a layer of PyG keeps what it computed of features before; edges may stay there."""
    kept = {name: value for name, value in vars(module).items() if name.startswith("_cached")}
    return [name for name, value in kept.items() if isinstance(value, Tensor) and value.is_floating_point()]


def check_caches(model: Any, call: ModelCall) -> None:
    """Raise if layers keep something that they computed on other arguments: the output would not be that of these."""
    modules = model.named_modules() if isinstance(model, nn.Module) else ()
    warm = {path: names for path, module in modules if (names := _warm(module))}
    if not warm:
        return
    with torch.no_grad(), Plain(call.random_states):
        own = call.run(shadow_of(model, caches=True))
    try:
        fresh = run_plain(model, call)
        pairs = [(a, b) for a, b in zip(leaves(own), leaves(fresh), strict=True) if isinstance(a, Tensor)]
        same = all(a.shape == b.shape and torch.allclose(a, b, rtol=1e-4, equal_nan=True) for a, b in pairs)
    except (RuntimeError, IndexError, ValueError):
        same = False
    if not same:
        path, names = next(iter(warm.items()))
        raise ValueError(
            f"{', '.join(map(repr, warm))} keep what they computed on other arguments (cached=True), and the model's"
            " output is not that of these arguments; give those of the first call, or empty them first:"
            f" model.{path + '.' if path else ''}{names[0]} = None"
        )


class Plain(DispatchMode):
    """A forward pass that draws random numbers of its own, and notes its operations.

    With ``rows``, it also notes the size of each row of every value that has so many rows, by the number of the
    operation: a squashing operation behind them can make very different values the same.
    """

    def __init__(self, states: RandomStates, rows: int | None = None) -> None:
        super().__init__()
        self.operations: list[OpOverload] = []
        self.sizes: dict[int, Tensor] = {}
        self._rows = rows
        self._draws = OwnDraws(states)

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if self.in_place_of:
            args, kwargs = self.stand_in(args), self.stand_in(kwargs or {})
        self.operations.append(func)
        schema = op_schema(func)
        if schema.draws:
            return self._draws(func, args, kwargs or {})
        out = func(*args, **kwargs) if kwargs else func(*args)
        if self._rows is not None and not (schema.moves or schema.carries_nothing) and _has_rows(out, self._rows):
            self.sizes[len(self.operations)] = torch.linalg.vector_norm(out.reshape(len(out), -1), dim=1)
        return out


def _has_rows(value: Any, rows: int) -> bool:
    plain = isinstance(value, Tensor) and value.layout == torch.strided and value.is_floating_point()
    return plain and value.dim() > 0 and len(value) == rows


def _copied(value: Any, copies: dict[int, Any]) -> Any:
    """The value with modules replaced by those of the shadow, parameters shared, and all else copied once."""
    kind = type(value)
    if kind in _SHARED:
        return value
    if kind in _CONTAINERS and not value:  # most of what a module holds are empty dicts of hooks
        return kind()
    if id(value) in copies:
        return copies[id(value)]
    if isinstance(value, Tensor) and isinstance(value, nn.Parameter):  # the second question takes longer
        return value
    copies[id(value)] = made = _made(value, kind, copies)
    return made


def _made(value: Any, kind: Any, copies: dict[int, Any]) -> Any:
    if kind in (dict, OrderedDict):
        return kind([(key, _copied(item, copies)) for key, item in value.items()])
    if kind in (list, tuple, set):
        return kind([_copied(item, copies) for item in value])
    if isinstance(value, Tensor):
        return value if value.is_meta else value.detach().clone()
    if kind in _CALLABLES:
        return _variable(value, copies)
    if kind is torch.Generator:
        return value.clone_state()
    if isinstance(value, nn.Module):  # one that the model only refers to, as in a plain list
        return value if isinstance(value, torch.jit.ScriptModule) else _shadow(value, copies, None, None)
    try:
        return copy.deepcopy(value, copies)
    except Exception:  # noqa: BLE001 (locks, files and the like cannot be copied)
        return value


def _variable(value: Any, copies: dict[int, Any]) -> Any:
    """What a function refers to: modules as those of the shadow, and what leads to them; data and logs are shared."""
    kind = type(value)
    if id(value) in copies:
        return copies[id(value)]
    if isinstance(value, nn.Module):
        return _copied(value, copies)
    other = partial(_variable, copies=copies)
    if (compiled := getattr(value, "_torchdynamo_orig_callable", None)) is not None:
        return other(compiled)  # compiled code hides its operations
    if kind in _SHARED or isinstance(value, type) or not leads_to(value, copies):
        return value
    if kind is FunctionType:
        return rebuilt(value, other, copies)
    if kind is MethodType:
        return MethodType(other(value.__func__), other(value.__self__))
    if kind is partial:
        return partial(other(value.func), *map(other, value.args), **{k: other(v) for k, v in value.keywords.items()})
    if kind in (list, tuple, set):
        return kind(map(other, value))
    if kind in (dict, OrderedDict):
        copies[id(value)] = made = kind()
        made.update({key: other(item) for key, item in value.items()})
        return made
    copies[id(value)] = made = copy.copy(value)
    vars(made).update({name: other(item) for name, item in vars(value).items()})
    return made


_CALLABLES = frozenset({FunctionType, MethodType, partial})
_CONTAINERS = frozenset({list, tuple, dict, OrderedDict, set})
_SHARED = frozenset(
    {
        *(bool, int, float, complex, str, bytes, type(None), type, range, slice),
        *(nn.Parameter, torch.dtype, torch.device, torch.Size),
        *(BuiltinFunctionType, ModuleType, Inspector),
    }
)
"""What a forward pass cannot change, or what the shadow is meant to share."""


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


def check_call(model: Any, call: ModelCall) -> None:
    """Raise for what can be found wrong before any work: lazy layers, devices, the model's mode, features."""
    _check_initialised(model)
    _check_devices(model, call)
    _check_mode(model)
    x = call.x
    if isinstance(x, Tensor) and x.dim() and not len(x):
        raise ValueError(f"the graph has no nodes: x is {list(x.shape)}")


def _check_devices(model: Any, call: ModelCall) -> None:
    """All tensors in one place, or a clear error before any work."""
    places = {str(t.device) for t in call.tensors()}
    weights = {str(p.device) for p in model.parameters()} if isinstance(model, nn.Module) else set()
    if len(places | weights) > 1:
        raise ValueError(
            f"tensors are on different devices: the arguments on {sorted(places)}, the model's parameters on"
            f" {sorted(weights)}; move them together with .to(device)"
        )
    if "meta" in places | weights:
        raise ValueError("tensors on the meta device have no values to explain; load the model and the data first")


def _check_mode(model: Any) -> None:
    """Refuse a model that computes something else in training than it does when it predicts."""
    modules = model.named_modules() if isinstance(model, nn.Module) else []
    active = [name for name, module in modules if module.training and trains(module)]
    if active:
        raise ValueError(
            "the model is in training mode, where it drops entries at random or normalises by the batch"
            f" (in {short(active)}); call model.eval() first"
        )


def _check_initialised(model: Any) -> None:
    """Refuse lazy layers that do not know their width yet: a run on a shadow would not initialise the model itself."""
    parameters = model.named_parameters() if isinstance(model, nn.Module) else []
    lazy = [name for name, p in parameters if isinstance(p, nn.parameter.UninitializedParameter)]
    if lazy:
        raise ValueError(f"the model has parameters without a shape ({short(lazy)}); run it once on the data first")
