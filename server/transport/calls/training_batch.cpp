#include "server/transport/calls/training_batch.h"

#include "core/base/error.h"
#include "server/transport/infer/decode.h"

namespace tensord::server {
namespace {

using WireType = WireReader::WireType;
using Tag = WireReader::Tag;

constexpr uint32_t kBatchField = 8;
constexpr uint32_t kCompleteField = 9;

}  // namespace

TrainingBatch parse_training_batch(const WireMessage& message, RequestLimits::Admission* admission) {
  TrainingBatch batch;
  batch.tensors = parse_infer_message(message, admission);
  batch.job_id = batch.tensors.model_name;
  batch.has_tensors = !batch.tensors.inputs.empty();
  WireReader reader(message);
  while (!reader.at_end()) {
    const Tag tag = reader.read_tag();
    if (tag.field == kBatchField && tag.type == WireType::kVarint) {
      batch.number = static_cast<int64_t>(reader.read_varint());
      check(*batch.number >= 0, "batch: must not be below 0, got ", *batch.number);
    } else if (tag.field == kCompleteField && tag.type == WireType::kVarint) {
      batch.is_complete = reader.read_varint() != 0;
    } else {
      reader.skip(tag);
    }
  }
  return batch;
}

std::vector<std::pair<std::string, Tensor>> decode_training_batch(const TrainingBatch& batch,
                                                                  const WireMessage& message,
                                                                  RequestLimits::Admission* admission) {
  // The job checks names and shapes itself. Here the data only must match the tensors' sizes, and no tensor may hold
  // strings.
  Signature any;
  for (const InferMessage::Input& input : batch.tensors.inputs) any.inputs.emplace_back().name = input.name;
  std::vector<std::pair<std::string, Tensor>> arrays;
  for (InferTensor& input : decode_inputs(batch.tensors, message, any, {.admission = admission}).inputs) {
    arrays.emplace_back(std::move(input.name), std::move(input.tensor));
  }
  return arrays;
}

}  // namespace tensord::server
