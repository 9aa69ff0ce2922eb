#include "server/transport/calls/training_messages.h"

#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "server/training/jobs/job_json.h"

namespace tensord::server {
namespace {

using Json = nlohmann::json;

constexpr const char* kStatePrefix = "JOB_STATE_";

// Converts through JSON, whose fields have the same names on both sides, so that no field is listed twice. These
// messages are small and rare.
Json message_json(const google::protobuf::Message& message) {
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

// In JSON an optimizer's options are fields of the optimizer; in the message, those without a field of their own are in
// the map `options`.
template <class Message>
void options_to_map(Json& json) {
  Json map = Json::object();
  for (const auto& [name, value] : json.items()) {
    if (Message::descriptor()->FindFieldByName(name) == nullptr) map[name] = value;
  }
  for (const auto& [name, value] : map.items()) json.erase(name);
  if (!map.empty()) json["options"] = std::move(map);
}

void options_from_map(Json& json, const std::string& path) {
  const auto map = json.find("options");
  if (map == json.end()) return;
  const Json options = std::move(*map);
  json.erase(map);
  for (const auto& [name, value] : options.items()) {
    check(!json.contains(name), path, ".options: ", name, " appears twice");
    check(name != "name" && name != "pattern" && name != "freeze" && name != "groups", path, ".options: '", name,
          "' is not an option");
    json[name] = value;
  }
}

// Converts the optimizer of a job's specification.
template <class OfOptimizer, class OfGroup>
void change_optimizer(Json& spec, const OfOptimizer& of_optimizer, const OfGroup& of_group) {
  const auto optimizer = spec.find("optimizer");
  if (optimizer == spec.end()) return;
  of_optimizer(*optimizer);
  const auto groups = optimizer->find("groups");
  if (groups == optimizer->end()) return;
  for (Json& group : *groups) of_group(group);
}

void options_to_maps(Json& spec) {
  change_optimizer(spec, options_to_map<training::v1::Optimizer>, options_to_map<training::v1::ParameterGroup>);
}

void options_from_maps(Json& spec) {
  change_optimizer(
      spec, [](Json& json) { options_from_map(json, "optimizer"); },
      [](Json& json) { options_from_map(json, "optimizer.groups"); });
}

}  // namespace

JobSpec to_job_spec(const training::v1::JobSpec& message) {
  Json json = message_json(message);
  options_from_maps(json);
  return job_spec_from_json(json);
}

void to_message(const JobSpec& spec, training::v1::JobSpec& message) {
  Json json = to_json(spec);
  options_to_maps(json);
  from_json(json, message);
}

JobStatus to_job_status(const training::v1::Job& message) {
  Json json = message_json(message);
  // A newer daemon may have further states.
  check(training::v1::JobState_IsValid(message.state()), "state: ", static_cast<int>(message.state()),
        " is not a job's state");
  json["state"] = training::v1::JobState_Name(message.state()).substr(std::string_view(kStatePrefix).size());
  if (json.contains("spec")) options_from_maps(json["spec"]);
  return job_status_from_json(json);
}

void to_message(const JobStatus& status, training::v1::Job& message) {
  Json json = to_json(status);
  json["state"] = std::string(kStatePrefix) + to_string(status.state);
  if (json.contains("spec")) options_to_maps(json["spec"]);
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
