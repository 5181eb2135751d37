"""Tensors and operations, no graphs: portions, the registry of rules, and the run that applies them."""
