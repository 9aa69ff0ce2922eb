#pragma once

#include <memory>
#include <string>

#include "core/distributed/group/backend.h"

// What the object libtensord_mpi.so or libtensord_mpich.so gives, which alone is linked to MPI; as Gloo's
// (../gloo/module_interface.h).
namespace tensord::distributed {

inline constexpr char kMpiInterface[] = "2 " __VERSION__;

class MpiModule {
 public:
  virtual ~MpiModule() = default;
  virtual const char* interface() const = 0;
  // Starts MPI where it has not been. Of all processes of this mpirun.
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Rank 0's text, at most 1 KiB, on all ranks.
  virtual std::string broadcast_text(const std::string& text) const = 0;
  // This host's name, as MPI has it.
  virtual std::string host() const = 0;
  virtual std::unique_ptr<Backend> make_engine(std::shared_ptr<Store> store, int rank, int size,
                                               Milliseconds timeout) const = 0;
};

// The object's only function: `extern "C" const MpiModule* tensord_mpi_module()`.
using MpiModuleFunction = const MpiModule* (*)();
inline constexpr char kMpiModuleFunction[] = "tensord_mpi_module";

}  // namespace tensord::distributed
