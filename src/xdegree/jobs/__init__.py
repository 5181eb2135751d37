"""Explain many predictions as a job: in parts, by several processes or on a Ray cluster, every result exactly once."""

from .folder import Status
from .run import resume, run, status
from .settings import JobError

__all__ = ["run", "status", "resume", "Status", "JobError"]
