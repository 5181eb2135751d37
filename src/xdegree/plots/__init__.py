"""Pictures of results. They return the figure, never show it, and work without a display.

Each takes a result first: ``plot_graph(e)``, ``plot_molecule(e, smiles)``, ``plot_sentence(e, words)`` an
`xdegree.Explanation` or plain scores [N], ``plot_agglomeration(tree, on)`` and ``plot_dendrogram(tree)`` an
`xdegree.ExplanationTree`, ``plot_waterfall(e)`` and ``plot_features(e)`` an explanation as bars,
``plot_dataset(explanations, graphs)`` many of them, ``plot_curves({name: (x, y)})`` numbers. `savefig` writes PNG or
SVG.
"""

try:
    from .agglomeration import plot_agglomeration, plot_dendrogram
    from .bars import plot_features, plot_waterfall
    from .curves import plot_curves, plot_surface
    from .dataset import plot_dataset
    from .graph import plot_graph
    from .molecule import plot_molecule
    from .sentence import plot_sentence
except ModuleNotFoundError as error:
    message = f'xdegree.plots needs {error.name}: pip install "xdegree[plot]"'
    raise ModuleNotFoundError(message, name=error.name) from error

__all__ = [
    "plot_graph",
    "plot_molecule",
    "plot_sentence",
    "plot_agglomeration",
    "plot_dendrogram",
    "plot_waterfall",
    "plot_features",
    "plot_dataset",
    "plot_curves",
    "plot_surface",
]
