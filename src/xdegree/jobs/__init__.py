"""Explain many predictions as a job: in parts, by several processes or on a Ray cluster, every result exactly once."""

from .settings import JobError
from .start import Engine, resume, run, status
from .storage import Status

__all__ = ["run", "status", "resume", "Status", "Engine", "JobError"]
