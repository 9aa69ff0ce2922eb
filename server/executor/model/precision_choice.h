#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/base/clock.h"
#include "server/executor/model/model.h"
#include "server/executor/warmup/warmup.h"

namespace tensord::server {

// Loads the model in a precision: f32, bf16 or int8.
using LoadInPrecision = std::function<std::unique_ptr<Model>(const std::string& precision)>;
// The requests to measure with.
using MakeRequests = std::function<std::vector<WarmupRequest>(const Signature& signature)>;

struct PrecisionLimits {
  // The largest difference of an output from that in f32, relative to its largest absolute value in f32.
  double tolerance = 0.02;
  const Clock& clock = Clock::system();
};

// `precision: auto`: the model in the precision in which the requests take least time, among those whose outputs stay
// within the tolerance; outputs that are not floats must be equal. It is f32 where none gains a twentieth, and where
// nothing can be compared: without requests, on a GPU, if the model keeps state, and if a float output is empty or all
// zeros. Requests made from shapes alone, and inputs of nothing but zeros, get random data. The calling thread's thread
// budget applies. It is f32 too if a request fails or another precision cannot be loaded. The result has a `precision`.
// Throws Error if `load` fails in f32.
std::unique_ptr<Model> load_in_fastest_precision(const LoadInPrecision& load, const MakeRequests& make_requests,
                                                 const PrecisionLimits& limits = {});

}  // namespace tensord::server
