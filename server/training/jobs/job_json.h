#pragma once

#include <nlohmann/json_fwd.hpp>

#include "server/training/jobs/job_spec.h"
#include "server/training/jobs/job_status.h"

namespace tensord::server {

// Converts jobs to and from JSON with the field names of protos/training.proto: for the job store, the transport's
// messages and `tensord jobs --json`. Fields with default values are left out. Reading throws Error{kInvalidArgument}
// naming an unknown field or one of the wrong type. Integers may be strings, as in protobuf's JSON.
nlohmann::json to_json(const JobSpec& spec);
JobSpec job_spec_from_json(const nlohmann::json& json);

nlohmann::json to_json(const JobStatus& status);
JobStatus job_status_from_json(const nlohmann::json& json);

nlohmann::json to_json(const CurvePoint& point);
CurvePoint curve_point_from_json(const nlohmann::json& json);

}  // namespace tensord::server
