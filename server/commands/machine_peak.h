#pragma once

#include "core/ops/prepared.h"

namespace tensord::server {

// What this machine can do at best, measured.
struct MachinePeak {
  double gflops = 0;          // multiplications and additions of independent chains in registers, 10^9 a second
  double read_gbs = 0;        // reading memory that no cache holds, 10^9 bytes a second
  const char* unit = "none";  // the instructions that were measured
};

// At this many threads and in this type; takes about 0.2 s. A type for which the processor has no
// instructions is measured in f32, as it is computed.
MachinePeak measure_peak(ops::Precision precision, int threads);

}  // namespace tensord::server
