"""Explain many predictions as a job: in parts, by several processes or on a Ray cluster, every result exactly once."""

from .settings import JobError
from .start import Engine, repair, resume, run, status
from .status import Status

__all__ = ["run", "status", "resume", "repair", "Status", "Engine", "JobError"]
