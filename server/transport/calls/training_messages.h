#pragma once

#include <vector>

#include "protos/training.pb.h"
#include "server/training/jobs/job_status.h"

namespace tensord::server {

// Converts between messages of protos/training.proto and the structs of server/training, which have the same fields.
// Throws Error{kInvalidArgument} naming the field.
JobSpec to_job_spec(const training::v1::JobSpec& message);
void to_message(const JobSpec& spec, training::v1::JobSpec& message);
JobStatus to_job_status(const training::v1::Job& message);
void to_message(const JobStatus& status, training::v1::Job& message);
CurvePoint to_curve_point(const training::v1::Point& message);
void to_message(const CurvePoint& point, training::v1::Point& message);
JobState to_job_state(training::v1::JobState state);

}  // namespace tensord::server
