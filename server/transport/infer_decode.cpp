#include "server/transport/infer_decode.h"

#include "core/base/error.h"
#include "server/transport/infer_contents.h"

namespace tensord::server {
namespace {

class InputDecoder {
 public:
  InputDecoder(const InferMessage& message, const WireMessage& wire) : message_(message), wire_(wire) {}

  InferTensor decode(size_t index, DecodedInputs& totals) const {
    const InferMessage::Input& input = message_.inputs[index];
    InferTensor out;
    out.name = input.name;
    out.datatype = *parse_datatype(input.datatype);
    out.shape = input.shape;
    const int64_t count = checked_numel(out.shape);
    if (!message_.raw_contents.empty()) {
      check(input.contents.empty(), "contents field must not be specified when using raw_input_contents for '",
            input.name, "' for model '", message_.model_name, "'");
      if (index >= message_.raw_contents.size()) fail_no_data(input);
      decode_raw(message_.raw_contents[index], count, out, totals);
    } else {
      if (input.contents.empty() && count != 0) fail_no_data(input);
      decode_typed(input, count, out, totals);
    }
    return out;
  }

 private:
  std::string what(const InferTensor& input) const {
    return concat("inference input '", input.name, "' for model '", message_.model_name, "'");
  }

  [[noreturn]] void fail_no_data(const InferMessage::Input& input) const {
    fail(ErrorCode::kInvalidArgument, "unable to find data for input tensor '", input.name, "' for model '",
         message_.model_name, "' in request.");
  }

  void decode_typed(const InferMessage::Input& input, int64_t count, InferTensor& out, DecodedInputs& totals) const {
    if (out.datatype == DataType::kBytes) {
      out.strings = decode_typed_strings(input.contents, count, what(out));
      for (const std::string& text : out.strings) totals.copied_bytes += text.size();
    } else {
      out.tensor = decode_typed_contents(input.contents, out.datatype, out.shape, count, what(out));
      totals.copied_bytes += out.tensor.size_bytes();
    }
  }

  void decode_raw(WireReader raw, int64_t count, InferTensor& out, DecodedInputs& totals) const {
    if (out.datatype == DataType::kBytes) {
      out.strings = decode_raw_strings(raw, count, what(out));
      totals.copied_bytes += raw.remaining();
      return;
    }
    uint64_t expected = 0;
    const bool overflows =
        __builtin_mul_overflow(static_cast<uint64_t>(count), uint64_t{size_of(out.datatype)}, &expected);
    check(!overflows && expected == raw.remaining(), "input byte size mismatch for input '", out.name, "' for model '",
          message_.model_name, "'. Expected ",
          overflows ? std::string("more than fits memory") : std::to_string(expected), ", got ", raw.remaining());
    const DType dtype = *to_dtype(out.datatype);
    const uint8_t* data = raw.contiguous();
    // A bool other than 0 and 1 is not a value the kernels may meet, so bools are copied clean.
    if (data != nullptr && reinterpret_cast<uintptr_t>(data) % size_of(out.datatype) == 0 && dtype != DType::kBool) {
      Storage storage = wrap_storage(
          const_cast<uint8_t*>(data), raw.remaining(), [owner = wire_.owner] {}, {},
          /*is_writable=*/false);
      out.tensor = Tensor::from_storage(std::move(storage), out.shape, contiguous_strides(out.shape), 0, dtype);
      return;
    }
    out.tensor = Tensor::empty(out.shape, dtype);
    totals.copied_bytes += raw.remaining();
    auto* bytes = static_cast<uint8_t*>(out.tensor.raw_data());
    const size_t size_bytes = raw.remaining();
    raw.copy_to(bytes, size_bytes);
    if (dtype == DType::kBool) {
      for (size_t i = 0; i < size_bytes; ++i) bytes[i] = bytes[i] != 0;
    }
  }

  const InferMessage& message_;
  const WireMessage& wire_;
};

}  // namespace

DecodedInputs decode_inputs(const InferMessage& message, const WireMessage& wire, const Signature& signature) {
  std::vector<InputHeader> headers;
  for (const InferMessage::Input& input : message.inputs) headers.push_back({input.name, input.datatype, input.shape});
  DecodedInputs out;
  out.input_indices = match_inputs(signature, message.model_name, headers);
  check(message.raw_contents.empty() || message.raw_contents.size() <= message.inputs.size(), "expected ",
        message.inputs.size(), " raw_input_contents but got ", message.raw_contents.size(), " for model '",
        message.model_name, "'");
  const InputDecoder decoder(message, wire);
  for (size_t i = 0; i < message.inputs.size(); ++i) out.inputs.push_back(decoder.decode(i, out));
  return out;
}

}  // namespace tensord::server
