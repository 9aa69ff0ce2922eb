"""Distributed computing with several processes, under torch.distributed's names.

    from tensord.engine import distributed as dist

    dist.init_process_group()            # of RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as `tensord launch` sets them
    dist.all_reduce(tensor)              # the sum over all ranks, in place
    dist.destroy_process_group()

The transport is Gloo, MPI (under mpirun) or, for CUDA devices, NCCL. None of them encrypts, so use trusted networks.
Objects are sent as pickles, which run code when they are loaded, so all ranks must be trusted. Unlike in PyTorch, a
mismatch between ranks (operation, shape, dtype) and a lost rank raise one error on all ranks and end the group. One
thread per process starts the operations.
"""

from tensord.engine.distributed import algorithms
from tensord.engine.distributed.collectives import (
    P2POp, Work, all_gather, all_gather_into_tensor, all_reduce, all_reduce_coalesced, all_to_all, all_to_all_single, barrier,
    batch_isend_irecv, broadcast, gather, irecv, isend, monitored_barrier, recv, reduce, reduce_scatter, reduce_scatter_tensor,
    scatter, send,
)
from tensord.engine.distributed.groups import (
    GroupMember, ProcessGroup, ReduceOp, destroy_process_group, get_backend, get_global_rank, get_group_rank,
    get_process_group_ranks, get_rank, get_world_size, group, init_process_group, is_available, is_gloo_available,
    is_initialized, is_mpi_available, is_nccl_available, make_premul_sum, new_group,
)
from tensord.engine.distributed.objects import (
    all_gather_object, broadcast_object_list, gather_object, recv_object_list, scatter_object_list, send_object_list,
)
from tensord.engine.distributed.stores import FileStore, HashStore, PrefixStore, Store, TCPStore

__all__ = [name for name in dir() if not name.startswith("_") and name not in ("collectives", "groups", "objects", "stores")]
