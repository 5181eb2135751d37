"""What a run changes in the whole process, and puts back: the random state, and PyTorch's fused kernels."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def random_state_kept() -> Iterator[None]:
    """Put the random state back if something drew from it."""
    states = [(torch.get_rng_state, torch.set_rng_state)]
    if torch.cuda.is_initialized():
        states.append((torch.cuda.get_rng_state, torch.cuda.set_rng_state))
    before = [get() for get, _ in states]
    try:
        yield
    finally:
        for (get, put), state in zip(states, before, strict=True):
            if not torch.equal(get(), state):
                put(state)


class _FusedKernels:
    """PyTorch's fused kernels, off while at least one run is on, in whatever thread.

    Those of transformers and recurrent layers hide their operations from the dispatcher.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._before = (True, True)

    @contextmanager
    def off(self) -> Iterator[None]:
        """Switch them off, and back to what they were when the last run ends."""
        with self._lock:
            if not self._users:
                self._before = (torch.backends.mha.get_fastpath_enabled(), torch._C._get_mkldnn_enabled())
                _set_fused(False, False)
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users:
                    _set_fused(*self._before)

    @contextmanager
    def as_before(self) -> Iterator[None]:
        """As the user has them, for an operation whose last bits depend on it; not while other runs need them off."""
        with self._lock:  # whoever starts a run now waits for the end of the operation
            alone = self._users == 1
            if alone:
                _set_fused(*self._before)
                try:
                    yield
                finally:
                    _set_fused(False, False)
        if not alone:
            yield


def _set_fused(attention: bool, onednn: bool) -> None:
    torch.backends.mha.set_fastpath_enabled(attention)
    torch._C._set_mkldnn_enabled(onednn)


FUSED_KERNELS = _FusedKernels()
