#pragma once

#include <string>
#include <vector>

#include "server/commands/bench_measure.h"

namespace tensord::server {

// How far one output of a model is from that of a reference, over all sets of arguments.
struct OutputDifference {
  std::string name;  // "0", "1.boxes": the place in the result
  int64_t elements = 0;
  double max_abs = 0;
  double max_relative = 0;  // to the reference, where that is at least a thousandth of its largest value
  double mean_abs = 0;
  double cosine = 1;  // of all elements as one vector
  double top1_agreement =
      -1;  // share of last-dimension rows with the largest value in the same place; -1: no such rows
};

// Runs the model in the options' precision and in that of `options.compare` on the same arguments.
// Throws Error.
std::vector<OutputDifference> compare_precisions(const BenchOptions& options);

}  // namespace tensord::server
