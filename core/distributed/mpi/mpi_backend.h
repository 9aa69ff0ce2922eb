#pragma once

#include <memory>

#include "core/distributed/group/backend.h"
#include "core/distributed/group/process_group.h"

namespace tensord::distributed {

// Backends over MPI, for processes started by mpirun: its transports (shared memory, fabrics) and its collectives. MPI
// is linked into a separate shared library: libtensord_mpi.so (Open MPI), or libtensord_mpich.so if MPICH's mpiexec
// started the process. It is searched where Gloo's is, or at TENSORD_MPI.
//
// MPI can be initialized once in a process, and does not survive a lost process: mpirun then kills all others. A group
// that an error has ended leaves MPI unusable in this process; the process must end, and does so without MPI_Finalize.
// Waits poll the clock and abort(), because MPI cannot.
//
// Throws Error: kUnimplemented listing the searched places if the library is not found, kFailedPrecondition if MPI does
// not support several threads.
BackendFactory mpi_backends();
bool has_mpi();

// The group of all processes of this mpirun, with MPI's ranks and a store that rank 0 serves.
std::unique_ptr<ProcessGroup> make_mpi_world(GroupOptions options = {});

}  // namespace tensord::distributed
