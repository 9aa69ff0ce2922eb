#pragma once

#include "core/ops/prepared.h"

namespace tensord::server {

// The measured peak performance of this machine.
struct MachinePeak {
  double gflops = 0;          // 10^9 multiplications and additions per second, in independent register chains
  double read_gbs = 0;        // memory read bandwidth in 10^9 bytes per second
  const char* unit = "none";  // the instruction set that was measured
};

// Measures with this number of threads and this type; takes about 0.2 s. A type without hardware support is measured in
// f32, because it is computed in f32.
MachinePeak measure_peak(ops::Precision precision, int threads);

}  // namespace tensord::server
