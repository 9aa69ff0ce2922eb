#pragma once

#include <memory>
#include <string>

#include "core/distributed/group/backend.h"

// The interface of the shared library libtensord_mpi.so or libtensord_mpich.so. Only these libraries link MPI; compare
// Gloo's (../gloo/module_interface.h).
namespace tensord::distributed {

inline constexpr char kMpiInterface[] = "2 " __VERSION__;

class MpiModule {
 public:
  virtual ~MpiModule() = default;
  virtual const char* interface() const = 0;
  // Initializes MPI if needed. Relative to all processes of this mpirun.
  virtual int rank() const = 0;
  virtual int size() const = 0;
  // Rank 0's string, at most 1 KiB, on all ranks.
  virtual std::string broadcast_text(const std::string& text) const = 0;
  // This host's name, as MPI reports it.
  virtual std::string host() const = 0;
  virtual std::unique_ptr<Backend> make_engine(std::shared_ptr<Store> store, int rank, int size,
                                               Milliseconds timeout) const = 0;
};

// The library's only exported function: `extern "C" const MpiModule* tensord_mpi_module()`.
using MpiModuleFunction = const MpiModule* (*)();
inline constexpr char kMpiModuleFunction[] = "tensord_mpi_module";

}  // namespace tensord::distributed
