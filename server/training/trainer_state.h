#pragma once

#include <string>
#include <vector>

#include "core/ops/generator.h"
#include "core/ops/value.h"
#include "server/training/checkpoint.h"
#include "server/training/jobs/job_status.h"

namespace tensord::server {

// The part of a checkpoint that is shown to users.
struct TrainerCurve {
  JobProgress progress;
  std::vector<CurvePoint> points;
};
std::string to_text(const TrainerCurve& curve);
// Throws Error{kDataLoss}.
TrainerCurve read_curve(const std::string& path);
// The first batch of a stream that is not part of the newest checkpoint.
int64_t next_batch_after(const Checkpoints& checkpoints);

// Converts a generator's state to a value and back. Throws Error for an invalid state.
ops::Value generator_state(const ops::Generator& generator, Device device = {});
void set_generator_state(ops::Generator& generator, const ops::Value& state, Device device = {});

}  // namespace tensord::server
