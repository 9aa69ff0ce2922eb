#include "message.h"

#include "protos/inference.pb.h"
#include "tensord/client/error.h"

namespace tensord::client {
namespace {

constexpr int kRawInputContents = 7;

// Copying less than this is cheaper than a separate slice.
constexpr size_t kCopiedBytes = 4096;

void set_parameter(const std::string& name, const Parameter& value,
                   google::protobuf::Map<std::string, inference::InferParameter>& parameters) {
  inference::InferParameter& parameter = parameters[name];
  if (const auto* flag = std::get_if<bool>(&value)) parameter.set_bool_param(*flag);
  if (const auto* number = std::get_if<int64_t>(&value)) parameter.set_int64_param(*number);
  if (const auto* text = std::get_if<std::string>(&value)) parameter.set_string_param(*text);
  if (const auto* number = std::get_if<double>(&value)) parameter.set_double_param(*number);
  if (const auto* number = std::get_if<uint64_t>(&value)) parameter.set_uint64_param(*number);
}

void set_parameters(const Parameters& given, google::protobuf::Map<std::string, inference::InferParameter>& out) {
  for (const auto& [name, value] : given) set_parameter(name, value, out);
}

template <class Map>
void set_region(const Tensor& tensor, Map& parameters) {
  parameters["shared_memory_region"].set_string_param(tensor.region()->region);
  parameters["shared_memory_byte_size"].set_int64_param(static_cast<int64_t>(tensor.size_bytes()));
  if (tensor.region()->offset != 0) {
    parameters["shared_memory_offset"].set_int64_param(static_cast<int64_t>(tensor.region()->offset));
  }
}

void set_sequence(const Sequence& sequence, google::protobuf::Map<std::string, inference::InferParameter>& out) {
  if (const auto* number = std::get_if<uint64_t>(&sequence.id)) {
    if (*number == 0) throw InvalidArgumentError("sequence.id: must not be 0");
    out["sequence_id"].set_int64_param(static_cast<int64_t>(*number));
  } else {
    const auto& text = std::get<std::string>(sequence.id);
    if (text.empty()) throw InvalidArgumentError("sequence.id: must not be empty");
    out["sequence_id"].set_string_param(text);
  }
  out["sequence_start"].set_bool_param(sequence.is_start);
  out["sequence_end"].set_bool_param(sequence.is_end);
}

void set_output(const Output& output, inference::ModelInferRequest::InferRequestedOutputTensor& out) {
  out.set_name(output.name);
  set_parameters(output.parameters, *out.mutable_parameters());
  if (output.classes > 0) (*out.mutable_parameters())["classification"].set_int64_param(output.classes);
  if (!output.into) return;
  if (!output.into->region()) {
    throw InvalidArgumentError("output '" + output.name + "': `into` does not lie in shared memory");
  }
  set_region(*output.into, *out.mutable_parameters());
}

}  // namespace

void MessageBuilder::flush() {
  if (pending_.empty()) return;
  slices_.emplace_back(std::move(pending_));
  pending_.clear();
}

void MessageBuilder::add_bytes_field(int field, const Tensor& tensor) {
  constexpr int kLengthDelimited = 2;
  const auto add_varint = [this](uint64_t value) {
    for (; value >= 0x80; value >>= 7) pending_ += static_cast<char>(value | 0x80);
    pending_ += static_cast<char>(value);
  };
  add_varint(static_cast<uint64_t>(field << 3 | kLengthDelimited));
  add_varint(tensor.size_bytes());
  if (tensor.size_bytes() < kCopiedBytes) {
    pending_.append(reinterpret_cast<const char*>(tensor.bytes().data()), tensor.size_bytes());
    return;
  }
  flush();
  auto* owner = new std::shared_ptr<const void>(tensor.data());
  slices_.emplace_back(
      const_cast<void*>(tensor.data().get()), tensor.size_bytes(),
      [](void* held) { delete static_cast<std::shared_ptr<const void>*>(held); }, owner);
}

grpc::ByteBuffer MessageBuilder::finish() {
  flush();
  return grpc::ByteBuffer(slices_.data(), slices_.size());
}

grpc::ByteBuffer encode(const Request& request) {
  inference::ModelInferRequest message;
  message.set_model_name(request.model);
  message.set_model_version(request.version);
  message.set_id(request.id);
  auto& parameters = *message.mutable_parameters();
  set_parameters(request.parameters, parameters);
  if (request.sequence) set_sequence(*request.sequence, parameters);
  if (request.priority != 0) parameters["priority"].set_uint64_param(request.priority);
  if (request.queue_timeout_us != 0) {
    parameters["timeout"].set_int64_param(static_cast<int64_t>(request.queue_timeout_us));
  }
  if (request.wants_final_response) parameters["triton_enable_empty_final_response"].set_bool_param(true);
  for (const Input& input : request.inputs) {
    auto& out = *message.add_inputs();
    out.set_name(input.name);
    out.set_datatype(to_string(input.tensor.type()));
    out.mutable_shape()->Assign(input.tensor.shape().begin(), input.tensor.shape().end());
    set_parameters(input.parameters, *out.mutable_parameters());
    if (input.tensor.region()) set_region(input.tensor, *out.mutable_parameters());
  }
  for (const Output& output : request.outputs) set_output(output, *message.add_outputs());
  MessageBuilder builder(message.SerializeAsString());
  for (const Input& input : request.inputs) {
    if (!input.tensor.region()) builder.add_bytes_field(kRawInputContents, input.tensor);
  }
  return builder.finish();
}

OutputRegions output_regions(const Request& request) {
  OutputRegions regions;
  for (const Output& output : request.outputs) {
    if (output.into) regions.emplace_back(output.name, *output.into);
  }
  return regions;
}

}  // namespace tensord::client
