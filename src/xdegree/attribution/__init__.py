"""A question in, scores out: decompose, explain, check, and PyG's interface."""
