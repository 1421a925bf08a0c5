"""A conditional variational autoencoder over slates, conditioned on a response for each slot."""

from dataclasses import dataclass

import jax

from submax.models.nn.designs.cvae_design import CVAEDesign, CVAEModel
from submax.models.nn.designs.design import Example


@dataclass(frozen=True)
class SlateCVAEDesign(CVAEDesign):
    """The design of a CVAE whose encoded reward joins the encoded responses of all slots.

    Reference: Jiang et al. (2019).
    """

    def held_out_losses(
        self, model: CVAEModel, batch: Example, share: jax.Array, key: jax.Array
    ) -> jax.Array:
        """Return minus the evidence bound: responses of several slots cannot be listed."""
        return self.losses(model, batch, key)[:, None]
