"""Trained models as files that are safe to open: the safetensors format, with the model's config inside.

Such a file is eight bytes that tell the length of a JSON header, the header (type, shape and place of each tensor, and
free texts), and the raw numbers. Nothing in it can run. Other programs that read safetensors can read these files.
"""

import json
import math
import struct
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from .models import GAT, GCN, build

_TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}


class BrokenCheckpointError(ValueError):
    """A checkpoint that is there but cannot be used as it is; the message names it."""

    def __init__(self, path: Path, why: object) -> None:
        super().__init__(f"{path} is not a whole checkpoint ({why}); delete it and train again")


def save_model(path: Path | str, model: GCN | GAT, **notes: Any) -> None:
    """Write a model; an interrupted write leaves the file as it was.

    Args:
        path: the file.
        model: one of `xdegree.models`; its config goes into the file.
        **notes: plain values to keep with it, such as its accuracies.
    """
    path = Path(path)
    header: dict[str, Any] = {"__metadata__": {"config": json.dumps(model.config), "notes": json.dumps(notes)}}
    parts, end = [], 0
    for name, value in model.state_dict().items():
        raw = value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes()
        header[name] = {
            "dtype": _NAMES[value.dtype],
            "shape": list(value.shape),
            "data_offsets": [end, end + len(raw)],
        }
        parts.append(raw)
        end += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # so that numbers start at a multiple of eight
    scratch = path.with_name(path.name + ".part")
    scratch.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))
    scratch.replace(path)


def load_model(path: Path | str) -> tuple[GCN | GAT, dict[str, Any]]:
    """The model of a file, in eval mode, and the notes kept with it."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint {path}")
    try:
        header, state = _read(path.read_bytes())
        config, notes = (json.loads(header["__metadata__"][key]) for key in ("config", "notes"))
        model = build(config)
        dtypes = {value.dtype for value in state.values() if value.is_floating_point()}
        if len(dtypes) == 1:
            model.to(dtypes.pop())
        model.load_state_dict(state)
    except (ValueError, KeyError, TypeError, AttributeError, RuntimeError, struct.error) as error:
        raise BrokenCheckpointError(path, error) from error
    return model.eval(), notes


def _read(raw: bytes) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The header and the tensors, every place and size of which is checked before it is used."""
    (length,) = struct.unpack("<Q", raw[:8])
    if length > len(raw) - 8:
        raise ValueError("it is cut off in its header")
    header = json.loads(raw[8 : 8 + length])
    body, state, end = raw[8 + length :], {}, 0
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        dtype, shape, (a, b) = _TYPES[entry["dtype"]], entry["shape"], entry["data_offsets"]
        if a != end or b - a != math.prod(shape) * dtype.itemsize or b > len(body):
            raise ValueError(f"{name} is cut off")
        # Copied, because torch wants memory that it may write to.
        state[name] = torch.frombuffer(bytearray(body[a:b]), dtype=dtype).reshape(shape)
        end = b
    if end != len(body):
        raise ValueError("it has more bytes than its header says")
    return header, state
