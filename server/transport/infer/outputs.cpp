#include "server/transport/infer/outputs.h"

#include <algorithm>

#include "core/base/error.h"
#include "server/transport/infer/classification.h"
#include "server/transport/infer/contents.h"

namespace tensord::server {
namespace {

bool lies_in(const Tensor& tensor, const SharedRange& range) {
  const auto* data = static_cast<const uint8_t*>(tensor.raw_data());
  return tensor.numel() > 0 && data >= range.data && data < range.data + range.size_bytes;
}

// Writes the output's data to shared memory and leaves its metadata.
void write_to(const SharedRange& range, InferTensor& output, uint64_t& copied_bytes) {
  std::string texts;
  Tensor tensor;
  if (output.datatype == DataType::kBytes) {
    append_raw_strings(texts, output.strings);
  } else {
    tensor = output.tensor.contiguous();
  }
  const uint64_t size_bytes = tensor.defined() ? tensor.size_bytes() : texts.size();
  if (size_bytes > range.size_bytes) {
    fail(ErrorCode::kInternal, "shared memory size specified with the request for output '", output.name, "' (",
         range.size_bytes, " bytes) should be at least ", size_bytes, " bytes to hold the results");
  }
  const void* from = tensor.defined() ? tensor.raw_data() : texts.data();
  if (tensor.defined() && !tensor.device().is_host()) {
    range.write(tensor);
  } else {
    range.write(from, size_bytes);
  }
  if (from != range.data && from != range.device_data) copied_bytes += size_bytes;
  output.tensor = {};
  output.strings.clear();
}

const OutputPlan::Output* find_output(const OutputPlan& plan, const std::string& name) {
  const auto found = std::find_if(plan.outputs.begin(), plan.outputs.end(),
                                  [&name](const OutputPlan::Output& output) { return output.name == name; });
  return found == plan.outputs.end() ? nullptr : &*found;
}

// Labels are stored under the configured name, whichever name the request used.
const std::vector<std::string>& labels_of(const ModelVersion& model, const std::string& output) {
  const std::string* name = &output;
  for (const TensorSpec& spec : model.signature().outputs) {
    if (spec.answers_to(output)) name = &spec.name;
  }
  return model.class_labels(*name);
}

}  // namespace

std::vector<OutputPlace> output_places(const OutputPlan& plan, bool takes_device_tensors) {
  std::vector<OutputPlace> places;
  for (const OutputPlan::Output& output : plan.outputs) {
    if (!output.range || output.classes > 0) continue;
    const SharedRange& range = *output.range;
    if (!range.data && !(takes_device_tensors && range.device_data)) continue;
    // Writing over an input would change it while the model reads it.
    bool is_free = std::none_of(plan.input_ranges.begin(), plan.input_ranges.end(),
                                [&range](const SharedRange& input) { return range.overlaps(input); });
    for (const OutputPlan::Output& other : plan.outputs) {
      if (&other != &output && other.range && range.overlaps(*other.range)) is_free = false;
    }
    if (is_free) places.push_back({output.name, range.as_writable_storage()});
  }
  return places;
}

std::vector<bool> place_outputs(const OutputPlan& plan, const ModelVersion& model, std::vector<InferTensor>& outputs,
                                uint64_t& copied_bytes, RequestLimits::Admission* admission) {
  if (plan.is_empty()) return {};
  std::vector<bool> is_elsewhere(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    InferTensor& output = outputs[i];
    const OutputPlan::Output* wanted = find_output(plan, output.name);
    if (wanted && wanted->classes > 0) {
      if (admission) admission->grow(classes_bytes(output, wanted->classes, model.signature().max_batch_size > 0));
      output = classify(output, wanted->classes, model.signature().max_batch_size > 0, labels_of(model, output.name));
    }
    if (wanted && wanted->range) {
      write_to(*wanted->range, output, copied_bytes);
      is_elsewhere[i] = true;
    } else if (output.tensor.defined() &&
               std::any_of(plan.input_ranges.begin(), plan.input_ranges.end(),
                           [&output](const SharedRange& range) { return lies_in(output.tensor, range); })) {
      copied_bytes += output.tensor.size_bytes();
      output.tensor = output.tensor.clone();
    }
  }
  // After the last read from the regions.
  for (const SharedRange& range : plan.input_ranges) range.check_alive();
  return is_elsewhere;
}

}  // namespace tensord::server
