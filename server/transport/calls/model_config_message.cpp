#include "server/transport/calls/model_config_message.h"

#include <algorithm>

#include "core/base/error.h"
#include "server/config/pbtxt/model_config_reader.h"
#include "server/executor/model/instance_placement.h"

namespace tensord::server {
namespace {

constexpr const char* kPyTorch = "pytorch_libtorch";
constexpr const char* kOnnx = "onnxruntime_onnx";

template <class Tensor>
void complete_tensor(const TensorSpec& spec, bool has_batch, Tensor* out) {
  if (out->data_type() == inference::TYPE_INVALID && spec.datatype) {
    out->set_data_type(config_datatype(name_of(*spec.datatype)));
  }
  if (out->dims_size() > 0 || !spec.shape) return;
  for (size_t i = has_batch ? 1 : 0; i < spec.shape->size(); ++i) out->add_dims((*spec.shape)[i]);
}

// Tensors that the configuration lists come first, in its order.
template <class Tensors>
void complete_tensors(const std::vector<TensorSpec>& specs, bool has_batch, Tensors* out) {
  for (const TensorSpec& spec : specs) {
    const auto found =
        std::find_if(out->begin(), out->end(), [&](const auto& it) { return spec.answers_to(it.name()); });
    auto* tensor = found != out->end() ? &*found : out->Add();
    if (tensor->name().empty()) tensor->set_name(spec.name);
    complete_tensor(spec, has_batch, tensor);
  }
}

void set_place(Device device, inference::ModelInstanceGroup* group) {
  using Group = inference::ModelInstanceGroup;
  group->set_kind(device.kind == kCUDA ? Group::KIND_GPU : Group::KIND_CPU);
  group->clear_gpus();
  if (device.kind == kCUDA) group->add_gpus(device.index);
}

// As the instances are: no KIND_AUTO, each GPU by its number.
void complete_groups(const Signature& signature, const ModelConfig& config, inference::ModelConfig& out) {
  auto groups = out.mutable_instance_group()->begin();
  for (const InstanceGroupConfig& group : config.instance_groups) {
    while (groups->passive()) ++groups;
    PlacedGroup placed = place_group(group, signature.device);
    std::erase_if(placed.gpus, [&](int gpu) {
      return std::ranges::find(signature.instances, Device{kCUDA, static_cast<int8_t>(gpu)}) ==
             signature.instances.end();
    });
    set_place(placed.device, &*groups);
    if (placed.is_on_gpus()) {
      groups->set_kind(inference::ModelInstanceGroup::KIND_GPU);
      groups->mutable_gpus()->Assign(placed.gpus.begin(), placed.gpus.end());
    }
    groups->set_count(group.count);
    ++groups;
  }
}

}  // namespace

inference::ModelConfig to_model_config(const ModelVersion& model) {
  const ModelConfig& config = model.config();
  const Signature signature = model.described();
  inference::ModelConfig out;
  check_internal(out.ParseFromString(config.source), "the configuration of '", model.name(), "' cannot be read back");
  out.set_name(model.name());
  out.set_platform(signature.platform);
  if (out.backend().empty() && signature.platform == kPyTorch) out.set_backend("pytorch");
  if (out.backend().empty() && signature.platform == kOnnx) out.set_backend("onnxruntime");
  if (out.default_model_filename().empty()) out.set_default_model_filename(signature.file_name);
  if (out.version_policy().policy_choice_case() == inference::ModelVersionPolicy::POLICY_CHOICE_NOT_SET) {
    out.mutable_version_policy()->mutable_latest()->set_num_versions(config.latest_versions);
  }
  if (config.is_decoupled) out.mutable_model_transaction_policy()->set_decoupled(true);
  const std::string& chosen = model.precision().name;
  if (!chosen.empty()) (*out.mutable_parameters())["chosen_precision"].set_string_value(chosen);
  const bool has_batch = signature.max_batch_size > 0;
  complete_tensors(signature.inputs, has_batch, out.mutable_input());
  for (const TensorSpec& spec : signature.inputs) {
    for (auto& input : *out.mutable_input()) {
      if (spec.is_optional && spec.answers_to(input.name())) input.set_optional(true);
    }
  }
  complete_tensors(signature.outputs, has_batch, out.mutable_output());
  if (out.instance_group_size() == 0 && !config.is_ensemble()) {
    auto* group = out.add_instance_group();
    group->set_name(model.name());
    group->set_count(static_cast<int32_t>(model.workers()));
    set_place(signature.device, group);
  } else {
    complete_groups(signature, config, out);
  }
  return out;
}

}  // namespace tensord::server
