#pragma once

#include <memory>

#include "core/distributed/group/backend.h"
#include "core/distributed/group/process_group.h"

namespace tensord::distributed {

// Backends over MPI, for processes that mpirun started: its transports (shared memory, fabrics) and its collectives.
// MPI is in an object of its own, libtensord_mpi.so (Open MPI) or, where MPICH's mpiexec started the process,
// libtensord_mpich.so, which is looked for where Gloo's is, or where TENSORD_MPI says.
//
// MPI can be started once in a process, and does not survive a lost one: mpirun then ends all others. A group that was
// ended by an error leaves MPI unusable in this process; it must end, and does so without MPI_Finalize. Waits look at
// the clock and at abort() themselves, since MPI does not.
//
// Throws Error: kUnimplemented naming the places where the object is not, kFailedPrecondition where MPI does not allow
// several threads.
BackendFactory mpi_backends();
bool has_mpi();

// The group of all processes of this mpirun, by the ranks that it gave, with a store that rank 0 serves.
std::unique_ptr<ProcessGroup> make_mpi_world(GroupOptions options = {});

}  // namespace tensord::distributed
