#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <cstring>

#include "message.h"
#include "protos/inference.pb.h"
#include "tensord/client/error.h"

namespace tensord::client {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr uint32_t kRawOutputContents = 6;
constexpr uint32_t kStreamError = 1;
constexpr uint32_t kStreamResponse = 2;

[[noreturn]] void fail_parse() { throw_error(StatusCode::kDataLoss, "the server's answer cannot be read"); }

// The slices of a message as one byte sequence.
class Pieces {
 public:
  explicit Pieces(const grpc::ByteBuffer& message) {
    if (!message.Dump(&slices_).ok()) fail_parse();
    for (const grpc::Slice& slice : slices_) {
      arrays_.push_back(
          std::make_unique<google::protobuf::io::ArrayInputStream>(slice.begin(), static_cast<int>(slice.size())));
      streams_.push_back(arrays_.back().get());
    }
  }
  // A stream over all slices. Can be read once.
  google::protobuf::io::ZeroCopyInputStream& stream() {
    all_ = std::make_unique<google::protobuf::io::ConcatenatingInputStream>(streams_.data(),
                                                                            static_cast<int>(streams_.size()));
    return *all_;
  }
  // `size` bytes from `offset`. Refers to the message's memory if they are in one slice and aligned to `alignment`;
  // otherwise copies.
  std::shared_ptr<const void> bytes(size_t offset, size_t size, size_t alignment) const {
    size_t begin = 0;
    for (const grpc::Slice& slice : slices_) {
      if (offset >= begin && offset + size <= begin + slice.size()) {
        const uint8_t* data = slice.begin() + (offset - begin);
        // A short slice stores its bytes inline, so their address changes when it is moved.
        if (slice.size() < kOwnedBytes || reinterpret_cast<uintptr_t>(data) % alignment != 0) break;
        return {std::make_shared<grpc::Slice>(slice), data};
      }
      begin += slice.size();
    }
    return gather(offset, size);
  }

 private:
  static constexpr size_t kOwnedBytes = 256;

  std::shared_ptr<const void> gather(size_t offset, size_t size) const {
    std::shared_ptr<std::byte[]> copy(new std::byte[size]);
    size_t begin = 0;
    for (const grpc::Slice& slice : slices_) {
      const size_t from = std::max(offset, begin);
      const size_t to = std::min(offset + size, begin + slice.size());
      if (from < to) std::memcpy(copy.get() + (from - offset), slice.begin() + (from - begin), to - from);
      begin += slice.size();
    }
    return {copy, copy.get()};
  }

  std::vector<grpc::Slice> slices_;
  std::vector<std::unique_ptr<google::protobuf::io::ArrayInputStream>> arrays_;
  std::vector<google::protobuf::io::ZeroCopyInputStream*> streams_;
  std::unique_ptr<google::protobuf::io::ConcatenatingInputStream> all_;
};

// A response without its tensor data, and where that data is in the message.
struct Head {
  inference::ModelInferResponse fields;
  std::vector<std::pair<size_t, size_t>> payloads;  // (offset, size)
};

// Reads up to the stream's end or limit.
Head read_head(CodedInputStream& in) {
  Head head;
  std::string fields;
  {
    google::protobuf::io::StringOutputStream text(&fields);
    google::protobuf::io::CodedOutputStream out(&text);
    while (const uint32_t tag = in.ReadTag()) {
      const bool is_payload = WireFormatLite::GetTagFieldNumber(tag) == static_cast<int>(kRawOutputContents) &&
                              WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
      if (!is_payload) {
        if (!WireFormatLite::SkipField(&in, tag, &out)) fail_parse();
        continue;
      }
      uint32_t size = 0;
      if (!in.ReadVarint32(&size)) fail_parse();
      head.payloads.emplace_back(static_cast<size_t>(in.CurrentPosition()), size);
      if (!in.Skip(static_cast<int>(size))) fail_parse();
    }
    if (!in.ConsumedEntireMessage()) fail_parse();
  }
  if (!head.fields.ParseFromString(fields)) fail_parse();
  return head;
}

Parameters parameters_of(const google::protobuf::Map<std::string, inference::InferParameter>& parameters) {
  using Choice = inference::InferParameter::ParameterChoiceCase;
  Parameters out;
  for (const auto& [name, value] : parameters) {
    switch (value.parameter_choice_case()) {
      case Choice::kBoolParam: out[name] = value.bool_param(); break;
      case Choice::kInt64Param: out[name] = int64_t{value.int64_param()}; break;
      case Choice::kStringParam: out[name] = value.string_param(); break;
      case Choice::kDoubleParam: out[name] = value.double_param(); break;
      case Choice::kUint64Param: out[name] = uint64_t{value.uint64_param()}; break;
      case Choice::PARAMETER_CHOICE_NOT_SET: break;
    }
  }
  return out;
}

template <class T, class Values>
Tensor narrowed(const Values& values, std::vector<int64_t> shape) {
  std::vector<T> elements;
  for (const auto value : values) elements.push_back(static_cast<T>(value));
  return Tensor::copy_bytes(*detail::data_type_of<T>(), std::move(shape), std::as_bytes(std::span(elements)));
}

// For servers that send typed contents. Triton and tensord send raw contents.
Tensor from_contents(DataType type, std::vector<int64_t> shape, const inference::InferTensorContents& contents) {
  switch (type) {
    case DataType::kBool: return narrowed<uint8_t>(contents.bool_contents(), std::move(shape));
    case DataType::kUint8: return narrowed<uint8_t>(contents.uint_contents(), std::move(shape));
    case DataType::kUint16: return narrowed<uint16_t>(contents.uint_contents(), std::move(shape));
    case DataType::kUint32: return narrowed<uint32_t>(contents.uint_contents(), std::move(shape));
    case DataType::kUint64: return narrowed<uint64_t>(contents.uint64_contents(), std::move(shape));
    case DataType::kInt8: return narrowed<int8_t>(contents.int_contents(), std::move(shape));
    case DataType::kInt16: return narrowed<int16_t>(contents.int_contents(), std::move(shape));
    case DataType::kInt32: return narrowed<int32_t>(contents.int_contents(), std::move(shape));
    case DataType::kInt64: return narrowed<int64_t>(contents.int64_contents(), std::move(shape));
    case DataType::kFp32: return narrowed<float>(contents.fp32_contents(), std::move(shape));
    case DataType::kFp64: return narrowed<double>(contents.fp64_contents(), std::move(shape));
    case DataType::kBytes: {
      const std::vector<std::string> texts(contents.bytes_contents().begin(), contents.bytes_contents().end());
      return Tensor::strings(texts, std::move(shape));
    }
    case DataType::kFp16:
    case DataType::kBf16: break;
  }
  throw_error(StatusCode::kDataLoss, std::string(to_string(type)) + " has no typed contents");
}

Tensor output_tensor(const Head& head, int index, const Pieces& pieces, const OutputRegions& regions) {
  const auto& output = head.fields.outputs(index);
  const DataType type = parse_data_type(output.datatype());
  std::vector<int64_t> shape(output.shape().begin(), output.shape().end());
  const auto region =
      std::find_if(regions.begin(), regions.end(), [&](const auto& wanted) { return wanted.first == output.name(); });
  if (region != regions.end()) {
    size_t size = element_size(type);
    for (const int64_t dim : shape) size *= static_cast<size_t>(std::max<int64_t>(dim, 0));
    if (type == DataType::kBytes) size = region->second.size_bytes();
    if (size > region->second.size_bytes()) fail_parse();
    return Tensor::share(type, std::move(shape), region->second.data(), size);
  }
  if (output.has_contents()) return from_contents(type, std::move(shape), output.contents());
  if (static_cast<size_t>(index) >= head.payloads.size()) fail_parse();
  const auto [offset, size] = head.payloads[static_cast<size_t>(index)];
  const size_t alignment = std::max<size_t>(1, element_size(type));
  return Tensor::share(type, std::move(shape), pieces.bytes(offset, size, alignment), size);
}

Result make_result(const Head& head, const Pieces& pieces, const OutputRegions& regions) {
  Result result{.model = head.fields.model_name(),
                .version = head.fields.model_version(),
                .id = head.fields.id(),
                .outputs = {},
                .parameters = parameters_of(head.fields.parameters())};
  for (int i = 0; i < head.fields.outputs_size(); ++i) {
    result.outputs.push_back({head.fields.outputs(i).name(), output_tensor(head, i, pieces, regions),
                              parameters_of(head.fields.outputs(i).parameters())});
  }
  return result;
}

}  // namespace

Result decode(const grpc::ByteBuffer& message, const OutputRegions& regions) {
  Pieces pieces(message);
  CodedInputStream in(&pieces.stream());
  return make_result(read_head(in), pieces, regions);
}

StreamResult decode_stream(const grpc::ByteBuffer& message, const FindRegions& find_regions) {
  Pieces pieces(message);
  CodedInputStream in(&pieces.stream());
  StreamResult result;
  while (const uint32_t tag = in.ReadTag()) {
    const auto field = static_cast<uint32_t>(WireFormatLite::GetTagFieldNumber(tag));
    uint32_t size = 0;
    if (field == kStreamError) {
      if (!in.ReadVarint32(&size) || !in.ReadString(&result.error, static_cast<int>(size))) fail_parse();
    } else if (field == kStreamResponse) {
      if (!in.ReadVarint32(&size)) fail_parse();
      const auto limit = in.PushLimit(static_cast<int>(size));
      const Head head = read_head(in);
      in.PopLimit(limit);
      result.result = make_result(head, pieces, find_regions(head.fields.id()));
    } else if (!WireFormatLite::SkipField(&in, tag)) {
      fail_parse();
    }
  }
  return result;
}

}  // namespace tensord::client
