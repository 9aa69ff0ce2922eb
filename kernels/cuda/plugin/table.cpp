#include "kernels/cuda/plugin/table.h"

namespace tensord::kernels {

const void* kernel_table() {
  static const KernelTable table{
#define KERNEL(NAME, JOB) .NAME = NAME,
#include "kernels/cuda/kernels.def"
#undef KERNEL
  };
  return &table;
}

}  // namespace tensord::kernels
