"""The output layer: hidden vectors and the output embedding matrix to one training loss.

Every method in the four papers either changes the loss of given logits, or the gradient that the output
embedding W receives. The logits' values are the same for all, so one pass is enough and is exact.

Shapes: N positions, d width, V types. z = h W^T are the logits, y the targets, D = dL/dz.
"""

from dataclasses import dataclass

import torch
from torch.nn import functional as F


class GatedLinear(torch.autograd.Function):
    """z = h W^T whose gradient with respect to W is gated by rows.

    dL/dh = D W
    dL/dW = sum_c diag(g_c) D_c^T h_c + sum_t (1 - g_{c(t)}[y_t]) D[t, y_t] outer(e_{y_t}, h_t)

    c(t) is the class of position t, D_c and h_c hold the positions of class c, g_c is that class's gate (V).
    The second sum gives each position's own target its full gradient. This is the papers' form of three
    logits (agg, Eqs. 9 and 10) without the second and third of them.
    """

    @staticmethod
    def forward(hidden, weight, targets, gates, classes):
        """hidden N x d, weight V x d, targets N, gates C x V, classes N -> N x V."""
        return F.linear(hidden, weight)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, gradient):
        hidden, weight, targets, gates, classes = ctx.saved_tensors
        gates = gates.to(weight.dtype)
        # Under autocast the logits' gradient is of lower precision: products are taken in it, as autograd does,
        # and summed up in the parameters' own.
        low = gradient.dtype
        hidden_gradient = weight_gradient = None
        if ctx.needs_input_grad[0]:
            hidden_gradient = (gradient @ weight.to(low)).to(hidden.dtype)
        if ctx.needs_input_grad[1]:
            own = gradient.gather(1, targets[:, None])
            own_gate = gates[classes, targets][:, None]
            weight_gradient = torch.zeros_like(weight)
            weight_gradient.index_add_(0, targets, (1 - own_gate) * own.to(weight.dtype) * hidden.to(weight.dtype))
            for number, gate in enumerate(gates):
                members = (classes == number).nonzero().squeeze(1)
                if len(members):
                    part = gradient[members].T @ hidden[members].to(low)
                    weight_gradient.addcmul_(gate[:, None], part.to(weight.dtype))
        return hidden_gradient, weight_gradient, None, None, None


@dataclass
class Outputs:
    """What a loss, penalty or perturbation may look at.

    logits: N x V. hidden: N x d. weight: V x d. targets: N.
    """

    logits: torch.Tensor
    hidden: torch.Tensor
    weight: torch.Tensor
    targets: torch.Tensor

    def target_logits(self) -> torch.Tensor:
        """Logits of the targets, N x 1."""
        return self.logits.gather(1, self.targets[:, None])

    def cross_entropy(self, logits: torch.Tensor | None = None, label_smoothing: float = 0.0) -> torch.Tensor:
        """-log softmax(logits)[y] of each position, N; of the plain logits where none are given."""
        logits = self.logits if logits is None else logits
        return F.cross_entropy(logits, self.targets, reduction="none", label_smoothing=label_smoothing)


def output_loss(method, gate_state, hidden: torch.Tensor, weight: torch.Tensor, targets: torch.Tensor):
    """The training loss (a scalar) of a method: mean over positions plus the method's penalty.

    method: a `raretok.methods.Method`. gate_state: what its gate's `start` returned, or None; it has counted the
    targets of the whole update already and is only read here. hidden: N x d. weight: V x d. targets: N.
    Returns the loss and the plain logits (N x V).
    """
    if gate_state is None:
        logits = F.linear(hidden, weight)
    else:
        logits = GatedLinear.apply(hidden, weight, targets, *gate_state.gates(targets))
    outputs = Outputs(logits, hidden, weight, targets)
    if method.perturbation is not None:
        outputs.logits = method.perturbation(outputs)
    if method.training_temperature != 1.0:
        outputs.logits = outputs.logits * method.training_temperature
    loss = method.loss(outputs).mean()
    if method.penalty is not None:
        loss = loss + method.penalty(outputs)
    return loss, logits
