#include "server/training/trainer_state.h"

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/jit/archive/torch_file.h"
#include "core/ops/to_device.h"
#include "server/training/jobs/job_json.h"
#include "server/training/trainer.h"
#include "server/training/value_dict.h"

namespace tensord::server {

std::string to_text(const TrainerCurve& curve) {
  JobStatus status;
  status.progress = curve.progress;
  nlohmann::json points = nlohmann::json::array();
  for (const CurvePoint& point : curve.points) points.push_back(to_json(point));
  return nlohmann::json{{"status", to_json(status)}, {"points", std::move(points)}}.dump() + "\n";
}

TrainerCurve read_curve(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const nlohmann::json json = nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("status") || !json.contains("points")) {
    fail(ErrorCode::kDataLoss, path, ": damaged");
  }
  TrainerCurve curve;
  curve.progress = job_status_from_json(json["status"]).progress;
  for (const nlohmann::json& point : json["points"]) curve.points.push_back(curve_point_from_json(point));
  return curve;
}

int64_t next_batch_after(const Checkpoints& checkpoints) {
  const auto newest = checkpoints.newest();
  return newest ? read_curve(newest->curve_file()).progress.next_batch : 0;
}

ops::Value generator_state(const ops::Generator& generator, Device device) {
  const std::vector<uint8_t> bytes = device.is_host() ? generator.state() : generator.state(device);
  const Tensor tensor = Tensor::empty(Dims{static_cast<int64_t>(bytes.size())}, DType::kUInt8);
  std::memcpy(tensor.raw_data(), bytes.data(), bytes.size());
  return tensor;
}

void set_generator_state(ops::Generator& generator, const ops::Value& state, Device device) {
  const Tensor tensor = state.to_tensor().contiguous();
  check(tensor.dtype() == DType::kUInt8, "the state of a generator must be bytes");
  const std::span<const uint8_t> bytes(tensor.data<uint8_t>(), static_cast<size_t>(tensor.numel()));
  if (device.is_host()) return generator.set_state(bytes);
  generator.set_state(device, bytes);
}

ops::Value Trainer::state() const {
  ValueDict dict;
  dict.set("step", step_);
  dict.set("epoch", epoch_);
  dict.set("epoch_batches", epoch_batches_);
  dict.set("evaluated_step", evaluated_step_);
  dict.set("best_step", best_step_);
  dict.set("best_metric", best_metric_);
  if (best_loss_) dict.set("best_loss", *best_loss_);
  dict.set("stream_is_complete", stream_is_complete_);
  dict.set("is_finished", is_finished_);
  dict.set("end_reason", end_reason_);
  dict.set("stale_evaluations", stale_evaluations_);
  dict.set("trained_seconds", trained_seconds());
  dict.set("optimizer",
           ops::to_device(optimizer_state_.is_none() ? optimizer_->state_dict() : optimizer_state_, Device{}));
  if (!compression_state_.is_none()) dict.set("compression", compression_state_);
  dict.set("learning_rate", learning_rate_->state_dict());
  if (loss_scale_) dict.set("loss_scale", loss_scale_->state_dict());
  if (average_) dict.set("average", average_->state_dict());
  dict.set("source", source_->state_dict());
  dict.set("generator", generator_state(generator_));
  if (const Device device = model_->device(); !device.is_host()) {
    dict.set("device_generator", generator_state(generator_, device));
  }
  dict.set("order", generator_state(order_));
  return dict.value();
}

void Trainer::restore(const Checkpoints::Found& found) {
  try {
    const ValueDict dict(jit::load_torch_file(found.state_file()));
    step_ = dict.at("step").to_int();
    epoch_ = dict.at("epoch").to_int();
    epoch_batches_ = dict.at("epoch_batches").to_int();
    evaluated_step_ = dict.at("evaluated_step").to_int();
    best_step_ = dict.at("best_step").to_int();
    best_metric_ = dict.at("best_metric").to_float();
    best_loss_.reset();
    if (dict.has("best_loss")) best_loss_ = dict.at("best_loss").to_float();
    stream_is_complete_ = dict.at("stream_is_complete").to_bool();
    // Checkpoints of before 0.1.0 do not have these.
    if (dict.has("is_finished")) {
      is_finished_ = dict.at("is_finished").to_bool();
      end_reason_ = dict.at("end_reason").to_string();
      stale_evaluations_ = dict.at("stale_evaluations").to_int();
      seconds_before_ = dict.at("trained_seconds").to_float();
    }
    // The schedule first: creating and loading it may set learning rates, which the optimizer's state overrides.
    learning_rate_->load_state_dict(dict.at("learning_rate"));
    optimizer_->load_state_dict(dict.at("optimizer"));
    if (dict.has("compression")) compression_state_ = dict.at("compression");
    if (loss_scale_ && dict.has("loss_scale")) loss_scale_->load_state_dict(dict.at("loss_scale"));
    if (average_ && dict.has("average")) average_->load_state_dict(dict.at("average"));
    source_->load_state_dict(dict.at("source"));
    set_generator_state(generator_, dict.at("generator"));
    if (const Device device = model_->device(); !device.is_host() && dict.has("device_generator")) {
      set_generator_state(generator_, dict.at("device_generator"), device);
    }
    set_generator_state(order_, dict.at("order"));
  } catch (const Error& error) {
    throw Error(error.code(), concat(found.state_file(), ": ", error.what()));
  }
  TrainerCurve curve = read_curve(found.curve_file());
  job_.set_points(std::move(curve.points));
  job_.update([&](JobStatus& status) { status.progress = curve.progress; });
  checkpoint_step_ = found.step;
}

}  // namespace tensord::server
