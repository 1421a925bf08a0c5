"""Parameters of a model by name, as numpy arrays of all replicas."""

import functools
import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from submax.core.errors import InputError
from submax.models.networks.replicas import Parameters
from submax.models.nn.designs.design import Design
from submax.models.nn.layers.injection import Injection


def unpacked(design: Design[Any], vector: NDArray[np.float32]) -> Parameters:
    """Split a vector into parameters, by names such as ``decoder.head.weight``.

    ``vector [R, P]`` holds all parameters of a replica, in the order of ``ravel_pytree``.
    """
    shapes = _shapes(design)
    ends = np.cumsum([math.prod(shape) for shape in shapes.values()])[:-1]
    parts = np.split(vector, ends, axis=1)
    return {
        name: part.reshape(len(vector), *shape)
        for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }


def packed(design: Design[Any], parameters: Mapping[str, NDArray[np.float32]]) -> Any:
    """Return the parameters as one vector per replica, ``[R, P]``: the inverse of ``unpacked``."""
    shapes = _shapes(design)
    if {name: value.shape[1:] for name, value in parameters.items()} != shapes:
        raise InputError(
            f"the parameters {', '.join(parameters)} have other names or shapes than those of "
            f"{design}: use the parameters of the same design"
        )
    return np.concatenate(
        [
            parameters[name].reshape(len(parameters[name]), math.prod(shapes[name]))
            for name in shapes
        ],
        axis=1,
    )


def restored(design: Design[Any], parameters: Mapping[str, NDArray[np.float32]]) -> Any:
    """Return the model with these parameters, which keep their axis of replicas."""
    structure = jax.tree_util.tree_structure(model_shapes(design))
    return jax.tree_util.tree_unflatten(structure, [parameters[name] for name in _shapes(design)])


def moved(
    design: Design[Any],
    parameters: Mapping[str, NDArray[np.float32]],
    encoded_edges: NDArray[np.float32],
) -> Parameters:
    """Return the parameters of the same function for rewards encoded by other bin edges.

    ``encoded_edges [R, E, E]`` are the new bin edges, encoded by the old ones.
    """
    model = jax.tree_util.tree_map(
        lambda part: part.moved(encoded_edges) if isinstance(part, Injection) else part,
        restored(design, parameters),
        is_leaf=lambda part: isinstance(part, Injection),
    )
    leaves = jax.tree_util.tree_leaves(model)
    return {
        name: np.asarray(leaf, dtype=np.float32)
        for name, leaf in zip(_shapes(design), leaves, strict=True)
    }


@functools.cache
def _shapes(design: Design[Any]) -> Mapping[str, tuple[int, ...]]:
    leaves = jax.tree_util.tree_leaves_with_path(model_shapes(design))
    return {".".join(str(part.name) for part in path): leaf.shape for path, leaf in leaves}


@functools.cache
def model_shapes(design: Design[Any]) -> Any:
    """A model of the design with the shape of each parameter in place of the parameter.

    The shapes are remembered, because tracing them takes longer than a short training.
    """
    return jax.eval_shape(lambda: design.drawn(np.random.default_rng(0)))
