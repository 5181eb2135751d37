"""Trained models as files that are safe to open: the safetensors format, with the model's config inside."""

import json
from pathlib import Path
from typing import Any

from .models import Network, build


class BrokenCheckpointError(ValueError):
    """A checkpoint that is there but cannot be used as it is; the message names it."""

    def __init__(self, path: Path, why: object) -> None:
        super().__init__(f"{path} is not a whole checkpoint ({why}); delete it and train again")


def save_model(path: Path | str, model: Network, **notes: Any) -> None:
    """Write a model; an interrupted write leaves the file as it was.

    Args:
        path: the file.
        model: one of `xdegree.models`; its config goes into the file.
        **notes: plain values to keep with it, such as its accuracies.
    """
    path = Path(path)
    state = {name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()}
    texts = {"config": json.dumps(model.config), "notes": json.dumps(notes)}
    scratch = path.with_name(path.name + ".part")
    safetensors().torch.save_file(state, scratch, metadata=texts)
    scratch.replace(path)


def load_model(path: Path | str) -> tuple[Network, dict[str, Any]]:
    """The model of a file, in eval mode, and the notes kept with it."""
    path, library = Path(path), safetensors()
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint {path}")
    try:
        with library.safe_open(path, framework="pt") as file:
            texts = file.metadata() or {}
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no dict)
        config, notes = (json.loads(texts[key]) for key in ("config", "notes"))
        model = build(config)
        dtypes = {value.dtype for value in state.values() if value.is_floating_point()}
        if len(dtypes) == 1:
            model.to(dtypes.pop())
        model.load_state_dict(state)
    except (library.SafetensorError, ValueError, KeyError, TypeError, AttributeError, RuntimeError, OSError) as error:
        raise BrokenCheckpointError(path, error) from error
    return model.eval(), notes


def safetensors() -> Any:
    """The package, or a clear error."""
    try:
        import safetensors.torch
    except ImportError as error:
        raise ImportError('models are kept as safetensors files: pip install "xdegree[bench]"') from error
    return safetensors
