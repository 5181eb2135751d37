"""Which part of the graph an answer needs, and the proof of it."""
