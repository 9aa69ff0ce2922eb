#pragma once

#include <string>
#include <vector>

#include "server/commands/bench_measure.h"

namespace tensord::server {

// The error of one output relative to a reference, over all argument sets.
struct OutputDifference {
  std::string name;  // "0", "1.boxes": the place in the result
  int64_t elements = 0;
  double max_abs = 0;
  double max_relative = 0;  // over elements whose reference is at least a thousandth of its largest value
  double mean_abs = 0;
  double cosine = 1;           // over all elements as one vector
  double top1_agreement = -1;  // share of rows (last dimension) with the same argmax; -1: no such rows
};

// Runs the model on the same arguments in the options' precision and in `options.compare`. Throws Error.
std::vector<OutputDifference> compare_precisions(const BenchOptions& options);

}  // namespace tensord::server
