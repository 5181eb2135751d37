import json
import struct

import pytest
import torch

from xdegree.checkpoints import BrokenCheckpointError, load_model, save_model
from xdegree.models import GAT, GCN


@pytest.mark.parametrize("kind", [GCN, GAT])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_model_comes_back_as_it_was(tmp_path, kind, dtype):
    model = kind(3, 2, hidden=4, layers=2, level="graph").to(dtype)
    save_model(tmp_path / "m.safetensors", model, seed=3, result={"epoch": 7})
    again, notes = load_model(tmp_path / "m.safetensors")
    assert notes == {"seed": 3, "result": {"epoch": 7}}
    assert again.config == model.config
    assert not again.training
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in model.state_dict().items())
    assert [path.name for path in tmp_path.iterdir()] == ["m.safetensors"]


def test_the_file_is_in_the_safetensors_format(tmp_path):
    path = tmp_path / "m.safetensors"
    model = GCN(3, 2, hidden=4)
    save_model(path, model)
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    assert all(isinstance(text, str) for text in header["__metadata__"].values())
    entry = header["lin2.bias"]
    assert (entry["dtype"], entry["shape"]) == ("F32", [2])
    a, b = entry["data_offsets"]
    values = torch.frombuffer(bytearray(raw[8 + length + a : 8 + length + b]), dtype=torch.float32)
    assert torch.equal(values, model.lin2.bias.detach())
    assert length % 8 == 0


def write(path, header, body=b""):
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + body)


def test_a_broken_file_is_reported_by_name(tmp_path):
    path = tmp_path / "m.safetensors"
    save_model(path, GCN(3, 2, hidden=4))
    whole = path.read_bytes()
    for part in (b"", whole[:4], whole[:40], whole[:-1], whole + b"x", b"\xff" * 100):
        path.write_bytes(part)
        with pytest.raises(BrokenCheckpointError, match=r"m\.safetensors is not a whole checkpoint"):
            load_model(path)


@pytest.mark.parametrize(
    "header",
    [
        [],
        {},
        {"__metadata__": {}},
        {"__metadata__": {"config": "{}", "notes": "{}"}},
        {"__metadata__": {"config": '{"kind": "os.system"}', "notes": "{}"}},
        {"__metadata__": {"config": '{"kind": "GCN", "in_channels": 1, "out_channels": 1}', "notes": "{}"}},
        {"w": {"dtype": "F32", "shape": [10**9], "data_offsets": [0, 4 * 10**9]}},
        {"w": {"dtype": "object", "shape": [], "data_offsets": [0, 0]}},
        {"w": {"dtype": "F32", "shape": [1], "data_offsets": [-4, 0]}},
    ],
)
def test_a_header_that_lies_is_refused(tmp_path, header):
    write(tmp_path / "m.safetensors", header)
    with pytest.raises(BrokenCheckpointError):
        load_model(tmp_path / "m.safetensors")


def test_a_missing_file_is_no_broken_one(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no checkpoint"):
        load_model(tmp_path / "none")
