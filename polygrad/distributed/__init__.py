"""Training on several processes and machines: one program, run by each *rank*.

    from polygrad import distributed
    distributed.init()
    print(distributed.rank(), "of", distributed.size())

MPI or torch.distributed carry the bytes (`engine.py` is their interface, `mpi.py` and `torch.py` implement
it); mpirun, torchrun, SLURM or Ray start the ranks, and `launch.py` finds out who did. `group.py` has the
thread that communicates, and the guards; `collectives.py` is for Tensors, `messages.py` for JSON.

Ranks are processes. Several devices of one process are another thing: `Tensor.shard`.
"""

from polygrad.distributed.batch_norm import SyncBatchNorm, sync_batch_norm
from polygrad.distributed.collectives import (
    all_gather,
    all_reduce,
    all_reduce_,
    barrier,
    broadcast,
    broadcast_,
    reduce_scatter,
)
from polygrad.distributed.data_parallel import DataParallel, equalize
from polygrad.distributed.evaluation import evaluate, manual_seed
from polygrad.distributed.group import init, is_initialized, local_rank, rank, size
from polygrad.distributed.messages import all_gather_json, broadcast_json
from polygrad.distributed.scoring import score, scores

__all__ = [
    "DataParallel",
    "SyncBatchNorm",
    "all_gather",
    "all_gather_json",
    "all_reduce",
    "all_reduce_",
    "barrier",
    "broadcast",
    "broadcast_",
    "broadcast_json",
    "equalize",
    "evaluate",
    "init",
    "is_initialized",
    "local_rank",
    "manual_seed",
    "rank",
    "reduce_scatter",
    "score",
    "scores",
    "size",
    "sync_batch_norm",
]
