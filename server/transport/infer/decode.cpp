#include "server/transport/infer/decode.h"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <limits>

#include "core/base/error.h"
#include "core/base/thread_budget_scope.h"
#include "core/tensor/device_runtime.h"
#include "server/executor/model/unsigned_widening.h"
#include "server/transport/infer/contents.h"

namespace tensord::server {
namespace {

// Minimum size of a part that is copied by its own thread, and the number of threads that saturate the memory
// bandwidth.
constexpr size_t kCopyPartBytes = 1 << 20;
constexpr size_t kMaxCopyThreads = 4;

// What kernels load at once.
constexpr uintptr_t kDeviceAlignment = 16;

void copy_in_parts(const WireReader& from, uint8_t* to, CoreBudget* cores) {
  const size_t size_bytes = from.remaining();
  const size_t wanted = std::min(kMaxCopyThreads, size_bytes / kCopyPartBytes);
  if (wanted < 2 || cores == nullptr) {
    WireReader(from).copy_to(to, size_bytes);
    return;
  }
  const CoreBudget::Share share = cores->take(static_cast<int>(wanted));
  const ThreadBudgetScope budget(share.threads());
  parallel_for(static_cast<int64_t>(size_bytes), kCopyPartBytes, [&](int64_t begin, int64_t end) {
    WireReader part = from;
    part.advance(static_cast<size_t>(begin));
    part.copy_to(to + begin, static_cast<size_t>(end - begin));
  });
}

class InputDecoder {
 public:
  InputDecoder(const InferMessage& message, const WireMessage& wire, const DecodeOptions& options)
      : message_(message), wire_(wire), options_(options) {}

  void decode(size_t index, const TensorSpec& spec, InferTensor& out, DecodedInputs& totals) {
    decode(index, out, totals);
    if (spec.encoded) count_encoded(*spec.encoded, out);
  }

 private:
  void decode(size_t index, InferTensor& out, DecodedInputs& totals) {
    const InferMessage::Input& input = message_.inputs[index];
    out.name = input.name;
    out.datatype = *parse_datatype(input.datatype);
    out.shape = input.shape;
    const int64_t count = checked_numel(out.shape);
    if (index < options_.ranges.size() && options_.ranges[index].region) {
      check(input.contents.empty(), "unexpected 'content' provided when using shared memory for input tensor '",
            input.name, "' for model '", message_.model_name, "'");
      decode_shared(options_.ranges[index], count, out, totals);
    } else if (input.fill) {
      input.fill(count, out);
      totals.copied_bytes += out.tensor.defined() ? out.tensor.size_bytes() : raw_strings_bytes(out.strings);
    } else if (!message_.raw_contents.empty()) {
      // MLServer sends an empty message there.
      const bool has_elements = !std::ranges::all_of(input.contents, &WireReader::at_end);
      check(!has_elements, "contents field must not be specified when using raw_input_contents for '", input.name,
            "' for model '", message_.model_name, "'");
      // Inputs in shared memory have no entry in raw_input_contents.
      if (next_raw_ >= message_.raw_contents.size()) fail_no_data(input);
      decode_raw(message_.raw_contents[next_raw_++], count, out, totals);
    } else {
      if (input.contents.empty() && count != 0) fail_no_data(input);
      decode_typed(input, count, out, totals);
    }
  }

  std::string what(const InferTensor& input) const {
    return concat("inference input '", input.name, "' for model '", message_.model_name, "'");
  }

  [[noreturn]] void fail_no_data(const InferMessage::Input& input) const {
    fail(ErrorCode::kInvalidArgument, "unable to find data for input tensor '", input.name, "' for model '",
         message_.model_name, "' in request.");
  }

  // Refuses files that the model would refuse, and charges what they are decoded to, one after the other.
  void count_encoded(const EncodedInput& encoded, const InferTensor& input) const {
    uint64_t decoder_bytes = 0;
    for (size_t i = 0; i < input.strings.size(); ++i) {
      const EncodedInput::Needs needs =
          encoded.needs_of(input.strings[i], concat("input '", input.name, "', image ", i));
      count_bytes(needs.decoded_bytes);
      decoder_bytes = std::max(decoder_bytes, needs.decoder_bytes);
    }
    count_bytes(decoder_bytes);
  }

  // Charges strings before they are allocated: at most as many as `wire_bytes` can hold at `min_bytes` each.
  void count_strings(int64_t count, uint64_t wire_bytes, uint64_t min_bytes) const {
    count_bytes(wire_bytes + std::min(static_cast<uint64_t>(count), wire_bytes / min_bytes) * kTextBytes);
  }

  void count_bytes(uint64_t bytes) const {
    if (options_.admission != nullptr && bytes != 0) options_.admission->grow(bytes);
  }

  Tensor make_tensor(const InferTensor& out, DType dtype) const {
    count_bytes(static_cast<uint64_t>(checked_numel(out.shape)) * tensord::size_of(dtype));
    return Tensor::empty(out.shape, dtype);
  }

  void decode_typed(const InferMessage::Input& input, int64_t count, InferTensor& out, DecodedInputs& totals) const {
    if (out.datatype == DataType::kBytes) {
      uint64_t wire_bytes = 0;
      for (const WireReader& part : input.contents) wire_bytes += part.remaining();
      count_strings(count, wire_bytes, 2);
      out.strings = decode_typed_strings(input.contents, count, what(out));
      for (const std::string& text : out.strings) totals.copied_bytes += text.size();
    } else {
      uint64_t wire_bytes = 0;
      for (const WireReader& part : input.contents) wire_bytes += part.remaining();
      // Charged before allocation, for at most one element per byte of the message.
      count_bytes(std::min(static_cast<uint64_t>(count), wire_bytes) * size_of(tensor_datatype(out.datatype)));
      out.tensor = decode_typed_contents(input.contents, out.datatype, out.shape, count, what(out));
      out.datatype = tensor_datatype(out.datatype);
      totals.copied_bytes += out.tensor.size_bytes();
    }
  }

  void check_size(const InferTensor& input, int64_t count, uint64_t size_bytes) const {
    uint64_t expected = 0;
    const bool overflows =
        __builtin_mul_overflow(static_cast<uint64_t>(count), uint64_t{size_of(input.datatype)}, &expected);
    check(!overflows && expected == size_bytes, "input byte size mismatch for input '", input.name, "' for model '",
          message_.model_name, "'. Expected ",
          overflows ? std::string("more than fits memory") : std::to_string(expected), ", got ", size_bytes);
  }

  // `copy` writes the elements in wire format to the given address.
  template <class Copy>
  void decode_widened_unsigned(uint64_t size_bytes, InferTensor& out, DecodedInputs& totals, const Copy& copy) const {
    const DataType wire_type = out.datatype;
    count_bytes(2 * size_bytes);
    const WidenedTensor wide = make_widened_tensor(wire_type, out.shape);
    copy(reinterpret_cast<uint8_t*>(wide.wire_bytes));
    widen(wide, wire_type, what(out));
    out.tensor = wide.tensor;
    out.datatype = tensor_datatype(wire_type);
    totals.copied_bytes += size_bytes;
  }

  void decode_raw(WireReader raw, int64_t count, InferTensor& out, DecodedInputs& totals) const {
    if (out.datatype == DataType::kBytes) {
      count_strings(count, raw.remaining(), sizeof(uint32_t));
      out.strings = decode_raw_strings(raw, count, what(out));
      totals.copied_bytes += raw.remaining();
      return;
    }
    check_size(out, count, raw.remaining());
    if (is_widened_unsigned(out.datatype)) {
      const size_t size_bytes = raw.remaining();
      return decode_widened_unsigned(size_bytes, out, totals, [&](uint8_t* to) { raw.copy_to(to, size_bytes); });
    }
    const DType dtype = *to_dtype(out.datatype);
    const uint8_t* data = raw.contiguous();
    // Kernels must not see bools other than 0 and 1, so bools are copied and normalized.
    if (data != nullptr && reinterpret_cast<uintptr_t>(data) % size_of(out.datatype) == 0 && dtype != DType::kBool) {
      Storage storage = wrap_storage(
          const_cast<uint8_t*>(data), raw.remaining(), [owner = wire_.owner] {}, {},
          /*is_writable=*/false);
      out.tensor = Tensor::from_storage(std::move(storage), out.shape, contiguous_strides(out.shape), 0, dtype);
      return;
    }
    if (options_.may_scatter && raw.remaining() > 0 && dtype != DType::kBool) {
      out.scattered = std::make_shared<const ScatteredBytes>(raw.pieces(), wire_.owner);
      return;
    }
    out.tensor = make_tensor(out, dtype);
    totals.copied_bytes += raw.remaining();
    copy_in_parts(raw, static_cast<uint8_t*>(out.tensor.raw_data()), options_.cores);
    if (dtype == DType::kBool) clean_bools(out.tensor);
  }

  void decode_shared(const SharedRange& range, int64_t count, InferTensor& out, DecodedInputs& totals) const {
    if (out.datatype == DataType::kBytes) {
      check_copy(range, out);
      count_strings(count, range.size_bytes, sizeof(uint32_t));
      std::vector<uint8_t> bytes(range.size_bytes);
      range.copy_to(bytes.data());
      WireMessage texts;
      texts.add_piece(bytes);
      out.strings = decode_raw_strings(WireReader(texts), count, what(out));
      totals.copied_bytes += range.size_bytes;
      return;
    }
    check_size(out, count, range.size_bytes);
    if (is_widened_unsigned(out.datatype)) {
      check_copy(range, out);
      return decode_widened_unsigned(range.size_bytes, out, totals, [&](uint8_t* to) { range.copy_to(to); });
    }
    const DType dtype = *to_dtype(out.datatype);
    if (options_.may_be_on_device && range.device_data) return decode_on_device(range, dtype, out, totals);
    const bool is_usable =
        range.data != nullptr && reinterpret_cast<uintptr_t>(range.data) % size_of(out.datatype) == 0;
    if (is_floating(dtype) && is_usable) {
      out.tensor = Tensor::from_storage(range.as_storage(), out.shape, contiguous_strides(out.shape), 0, dtype);
      out.is_shared = true;
      return;
    }
    check_copy(range, out);
    out.tensor = make_tensor(out, dtype);
    range.copy_to(out.tensor.raw_data());
    totals.copied_bytes += range.size_bytes;
    if (dtype == DType::kBool) clean_bools(out.tensor);
  }

  // As above, without a way over the host.
  void decode_on_device(const SharedRange& range, DType dtype, InferTensor& out, DecodedInputs& totals) const {
    const bool is_bool = dtype == DType::kBool;
    const Tensor there = Tensor::from_storage(range.as_storage(), out.shape, contiguous_strides(out.shape), 0,
                                              is_bool ? DType::kUInt8 : dtype);
    if (is_floating(dtype) && reinterpret_cast<uintptr_t>(range.device_data) % kDeviceAlignment == 0) {
      out.tensor = there;
      out.is_shared = true;
      return;
    }
    check_copy(range, out);
    out.tensor = is_bool ? there.to(DType::kBool) : there.clone();
    synchronize(range.region->device());  // the model runs in another stream
    totals.copied_bytes += range.size_bytes;
  }

  // A client's shared memory may be huge and cost it nothing, so no more is copied than a message could hold.
  void check_copy(const SharedRange& range, const InferTensor& input) const {
    check(range.size_bytes <= INT_MAX, what(input), " has ", range.size_bytes, " bytes in shared memory; ",
          name_of(input.datatype), " has at most ", INT_MAX);
  }

  static void clean_bools(const Tensor& tensor) {
    auto* bytes = static_cast<uint8_t*>(tensor.raw_data());
    for (int64_t i = 0; i < tensor.numel(); ++i) bytes[i] = bytes[i] != 0;
  }

  const InferMessage& message_;
  const WireMessage& wire_;
  const DecodeOptions& options_;
  size_t next_raw_ = 0;
};

}  // namespace

DecodedInputs decode_inputs(const InferMessage& message, const WireMessage& wire, const Signature& signature,
                            const DecodeOptions& options) {
  absl::InlinedVector<InputHeader, 4> headers;
  for (const InferMessage::Input& input : message.inputs) headers.push_back({input.name, input.datatype, input.shape});
  DecodedInputs out;
  out.input_indices = match_inputs(signature, message.model_name, headers);
  check(message.raw_contents.empty() || message.raw_contents.size() <= message.inputs.size(), "expected ",
        message.inputs.size(), " raw_input_contents but got ", message.raw_contents.size(), " for model '",
        message.model_name, "'");
  InputDecoder decoder(message, wire, options);
  out.inputs.resize(message.inputs.size());
  for (size_t i = 0; i < message.inputs.size(); ++i) {
    InferTensor& input = out.inputs[i];
    decoder.decode(i, signature.inputs[out.input_indices[i]], input, out);
    input.is_own = input.tensor.defined() && input.tensor.storage()->is_writable();
  }
  return out;
}

}  // namespace tensord::server
