#pragma once

#include <nlohmann/json_fwd.hpp>

#include "server/training/jobs/job_spec.h"
#include "server/training/jobs/job_status.h"

namespace tensord::server {

// The JSON form of jobs, with the field names of protos/training.proto: what the job store keeps, what the transport
// takes messages apart with, and what `tensord jobs --json` prints. Fields that have their default are left out.
// Reading throws Error{kInvalidArgument} naming an unknown field or one of the wrong kind. Whole numbers may be
// written as strings, as protobuf does.
nlohmann::json to_json(const JobSpec& spec);
JobSpec job_spec_from_json(const nlohmann::json& json);

nlohmann::json to_json(const JobStatus& status);
JobStatus job_status_from_json(const nlohmann::json& json);

nlohmann::json to_json(const CurvePoint& point);
CurvePoint curve_point_from_json(const nlohmann::json& json);

}  // namespace tensord::server
