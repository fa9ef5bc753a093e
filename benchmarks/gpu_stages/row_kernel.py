"""A Triton kernel for plain cross-entropy's pass over the logits, to compare the compiled one with.

It keeps few rows in flight, so that a GPU's cache still holds a row when it is read for the second time.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def kernel(z, targets, nll, types, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    z += row * types
    target = tl.load(targets + row)
    own = tl.load(z + target).to(tl.float32)
    offsets = tl.arange(0, BLOCK)
    # Running maximum of each lane, and its sum of exponentials relative to it.
    largest = tl.full([BLOCK], -1e30, tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, types, BLOCK):
        x = tl.load(z + start + offsets, mask=start + offsets < types, other=float("-inf")).to(tl.float32)
        larger = tl.maximum(largest, x)
        total = total * tl.exp(largest - larger) + tl.exp(x - larger)
        largest = larger
    most = tl.max(largest, 0)
    log_normaliser = most + tl.log(tl.sum(total * tl.exp(largest - most), 0))
    tl.store(nll + row, log_normaliser - own)
    # No warp may write before every warp has read the target's logit.
    tl.debug_barrier()
    for start in range(0, types, BLOCK):
        inside = start + offsets < types
        x = tl.load(z + start + offsets, mask=inside).to(tl.float32)
        d = tl.exp(x - log_normaliser)
        d = tl.where(start + offsets == target, d - 1, d)
        tl.store(z + start + offsets, d.to(z.dtype.element_ty), mask=inside)


def softmax_gradient(z: torch.Tensor, targets: torch.Tensor, block: int, warps: int) -> torch.Tensor:
    """Overwrite logits z, n x V, with softmax minus one-hot; returns the NLL, n, in float32."""
    nll = torch.empty(len(z), dtype=torch.float32, device=z.device)
    kernel[(len(z),)](z, targets, nll, z.shape[1], BLOCK=block, num_warps=warps)
    return nll
