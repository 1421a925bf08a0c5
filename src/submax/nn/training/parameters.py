"""Parameters of a model by name, as plain arrays of all replicas."""

import functools
import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from submax.core.errors import InputError
from submax.networks.replicas import Parameters
from submax.nn.designs.design import Design
from submax.nn.layers.injection import Injection


def unpacked(design: Design[Any], vector: NDArray[np.float32]) -> Parameters:
    """Each parameter under the path that leads to it, such as ``decoder.head.weight``.

    ``vector [R, P]`` holds them one behind the other, as ``ravel_pytree`` does.
    """
    shapes = _shapes(design)
    ends = np.cumsum([math.prod(shape) for shape in shapes.values()])[:-1]
    parts = np.split(vector, ends, axis=1)
    return {
        name: part.reshape(len(vector), *shape)
        for (name, shape), part in zip(shapes.items(), parts, strict=True)
    }


def packed(design: Design[Any], parameters: Mapping[str, NDArray[np.float32]]) -> Any:
    """The reverse: ``[R, P]``."""
    shapes = _shapes(design)
    if {name: value.shape[1:] for name, value in parameters.items()} != shapes:
        raise InputError(f"these are not the parameters of {design}: {', '.join(parameters)}")
    return np.concatenate(
        [
            parameters[name].reshape(len(parameters[name]), math.prod(shapes[name]))
            for name in shapes
        ],
        axis=1,
    )


def restored(design: Design[Any], parameters: Mapping[str, NDArray[np.float32]]) -> Any:
    """The model with these parameters, which keep their first axis of replicas."""
    structure = jax.tree_util.tree_structure(model_shapes(design))
    return jax.tree_util.tree_unflatten(structure, [parameters[name] for name in _shapes(design)])


def moved(
    design: Design[Any], parameters: Mapping[str, NDArray[np.float32]], knots: NDArray[np.float32]
) -> Parameters:
    """The parameters of the same function when rewards are embedded by other knots.

    ``knots [R, E, E]`` are the new knots, embedded by the old ones.
    """
    model = jax.tree_util.tree_map(
        lambda part: part.moved(knots) if isinstance(part, Injection) else part,
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
    return jax.eval_shape(design.drawn, jax.random.key(0))
