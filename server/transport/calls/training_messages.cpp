#include "server/transport/calls/training_messages.h"

#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "server/training/jobs/job_json.h"

namespace tensord::server {
namespace {

using Json = nlohmann::json;

constexpr const char* kStatePrefix = "JOB_STATE_";

// Both sides have the same JSON, so no field is named a second time here. These messages are small and rare.
Json to_json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  check(status.ok(), "message cannot be read: ", status.ToString());
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  check(!json.is_discarded(), "message cannot be read");
  return json;
}

void from_json(const Json& json, google::protobuf::Message& message) {
  const auto status = google::protobuf::util::JsonStringToMessage(json.dump(), &message);
  check_internal(status.ok(), "job as a message: ", status.ToString());
}

}  // namespace

JobSpec to_job_spec(const training::v1::JobSpec& message) { return job_spec_from_json(to_json(message)); }

void to_message(const JobSpec& spec, training::v1::JobSpec& message) { from_json(to_json(spec), message); }

JobStatus to_job_status(const training::v1::Job& message) {
  Json json = to_json(message);
  const std::string state = json.value("state", "");
  check(state.starts_with(kStatePrefix), "the job's state is not known");
  json["state"] = state.substr(std::string_view(kStatePrefix).size());
  return job_status_from_json(json);
}

void to_message(const JobStatus& status, training::v1::Job& message) {
  Json json = to_json(status);
  json["state"] = std::string(kStatePrefix) + to_string(status.state);
  from_json(json, message);
}

CurvePoint to_curve_point(const training::v1::Point& message) {
  CurvePoint point{.step = message.step(),
                   .epoch = message.epoch(),
                   .loss = message.loss(),
                   .learning_rate = message.learning_rate(),
                   .gradient_norm = message.gradient_norm(),
                   .samples_per_second = message.samples_per_second(),
                   .metrics = {}};
  for (const auto& [name, value] : message.metrics()) point.metrics[name] = value;
  return point;
}

void to_message(const CurvePoint& point, training::v1::Point& message) {
  message.set_step(point.step);
  message.set_epoch(point.epoch);
  message.set_loss(point.loss);
  message.set_learning_rate(point.learning_rate);
  message.set_gradient_norm(point.gradient_norm);
  message.set_samples_per_second(point.samples_per_second);
  for (const auto& [name, value] : point.metrics) (*message.mutable_metrics())[name] = value;
}

JobState to_job_state(training::v1::JobState state) {
  const std::string name = training::v1::JobState_Name(state);
  check(name.starts_with(kStatePrefix), "states: ", static_cast<int>(state), " is not a job's state");
  return parse_job_state(name.substr(std::string_view(kStatePrefix).size()));
}

}  // namespace tensord::server
