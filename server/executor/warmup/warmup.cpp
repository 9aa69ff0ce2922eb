#include "server/executor/warmup/warmup.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <random>
#include <set>

#include "core/base/error.h"
#include "core/base/read_whole_file.h"
#include "core/tensor/lend.h"
#include "core/tensor/shape.h"
#include "server/executor/model/read_exactly.h"
#include "server/executor/model/sequence_model.h"
#include "server/executor/model/unsigned_widening.h"
#include "server/executor/requests/recorded_requests.h"

namespace tensord::server {
namespace {

using Source = ModelConfig::Warmup::Source;

// The limit per file of recorded requests, which stay in memory until every worker has run them.
constexpr RecordLimits kRecordLimits{.requests = 1000, .bytes = uint64_t{1} << 30};
// Maximum size of zero inputs that no configuration asks for.
constexpr double kMaxZeroBytes = 256 << 20;
// Maximum size of inputs of a configured warm-up request.
constexpr double kMaxMadeBytes = 1 << 30;
// Larger random tensors repeat this many elements.
constexpr int64_t kRandomElements = 1 << 20;

// Floats in [0, 1), other types 0 or 1: larger indices would only test the error path.
void fill_random(Tensor& tensor) {
  std::minstd_rand engine(1);
  std::uniform_real_distribution<double> uniform;
  const bool is_float = is_floating(tensor.dtype());
  dispatch_all(tensor.dtype(), "warm-up", [&]<class T>() {
    T* data = tensor.data<T>();
    const int64_t drawn = std::min(tensor.numel(), kRandomElements);
    for (int64_t i = 0; i < drawn; ++i) {
      data[i] = static_cast<T>(static_cast<float>(is_float ? uniform(engine) : static_cast<double>(engine() & 1)));
    }
    for (int64_t i = drawn; i < tensor.numel(); ++i) data[i] = data[i - drawn];
  });
}

// Reads BYTES elements: each is preceded by its length in 4 bytes.
std::vector<std::string> read_strings(const std::string& file, size_t count, const std::string& what) {
  const std::optional<std::string> text = read_whole_file(file);
  check(text.has_value(), what, ": ", file, " cannot be read");
  const std::string& rest = *text;
  std::vector<std::string> out;
  for (size_t at = 0; at < rest.size();) {
    uint32_t length = 0;
    check(rest.size() - at >= sizeof(length), what, ": ", file, " ends within an element");
    std::memcpy(&length, rest.data() + at, sizeof(length));
    at += sizeof(length);
    check(rest.size() - at >= length, what, ": ", file, " ends within an element");
    out.push_back(rest.substr(at, length));
    at += length;
  }
  check(out.size() == count, what, ": ", file, " has ", out.size(), " elements, expected ", count);
  return out;
}

InferTensor make_input(const std::string& name, DataType datatype, Dims shape, Source source, const std::string& file,
                       const std::string& request) {
  InferTensor out;
  out.name = name;
  out.datatype = datatype;
  out.shape = std::move(shape);
  const std::string what = concat("model_warmup '", request, "', input '", name, "'");
  const int64_t count = checked_numel(out.shape);
  constexpr double kTextBytes = sizeof(std::string);
  const double bytes =
      static_cast<double>(count) * (datatype == DataType::kBytes ? kTextBytes : static_cast<double>(size_of(datatype)));
  check(bytes <= kMaxMadeBytes, what, ": ", bytes, " bytes; a warm-up has at most ", kMaxMadeBytes);
  if (datatype == DataType::kBytes) {
    out.strings = source == Source::kFile ? read_strings(file, static_cast<size_t>(count), what)
                                          : std::vector<std::string>(static_cast<size_t>(count));
    return out;
  }
  Tensor tensor = Tensor::empty(out.shape, *to_dtype(tensor_datatype(datatype)));
  if (source == Source::kFile && is_widened_unsigned(datatype)) {
    const WidenedTensor wide = make_widened_tensor(datatype, out.shape);
    read_exactly(file, wide.wire_bytes, static_cast<size_t>(count) * size_of(datatype), what);
    widen(wide, datatype, what);
    tensor = wide.tensor;
  } else if (source == Source::kFile) {
    read_exactly(file, static_cast<char*>(tensor.raw_data()), tensor.size_bytes(), what);
  } else if (source == Source::kRandom) {
    fill_random(tensor);
  } else {
    std::fill_n(static_cast<char*>(tensor.raw_data()), tensor.size_bytes(), 0);
  }
  out.tensor = read_only(tensor);
  return out;
}

// Adds the inputs that the server fills in for requests.
void add_server_inputs(const Signature& signature, const ModelConfig& config, WarmupRequest& request) {
  const ModelConfig server = server_tensors(config);
  for (const TensorSpec& spec : signature.inputs) {
    const auto is_spec = [&](const auto& tensor) { return spec.answers_to(tensor.name); };
    if (std::none_of(server.inputs.begin(), server.inputs.end(), is_spec) || !spec.shape || !spec.datatype ||
        std::any_of(request.inputs.begin(), request.inputs.end(), is_spec)) {
      continue;
    }
    Dims shape = *spec.shape;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] < 0) shape[i] = i == 0 && signature.max_batch_size > 0 ? request.batch_size : 1;
    }
    request.inputs.push_back(make_input(spec.name, *spec.datatype, std::move(shape), Source::kZeros, "", request.name));
  }
}

// An empty string is no image, so these inputs get their example.
void fill_examples(const Signature& signature, WarmupRequest& request) {
  for (InferTensor& input : request.inputs) {
    const auto spec = std::ranges::find_if(signature.inputs, [&](const auto& it) { return it.answers_to(input.name); });
    if (spec == signature.inputs.end() || !spec->encoded) continue;
    for (std::string& file : input.strings) {
      if (file.empty()) file = spec->encoded->example();
    }
  }
}

WarmupRequest finish(WarmupRequest request, const Signature& signature, const std::string& model) {
  fill_examples(signature, request);
  std::vector<std::string> datatypes;
  for (const InferTensor& input : request.inputs) datatypes.emplace_back(name_of(input.datatype));
  std::vector<InputHeader> headers;
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    headers.push_back({request.inputs[i].name, datatypes[i], request.inputs[i].shape});
  }
  try {
    request.input_indices = match_inputs(signature, model, headers);
  } catch (const Error& error) {
    throw Error(error.code(), concat("model_warmup '", request.name, "': ", error.what()));
  }
  // Converts to the datatypes that requests have after validation.
  for (InferTensor& input : request.inputs) input.datatype = tensor_datatype(input.datatype);
  return request;
}

WarmupRequest configured(const ModelConfig::Warmup& warmup, const Signature& signature) {
  WarmupRequest request{.name = warmup.name, .count = warmup.count, .batch_size = warmup.batch_size};
  for (const auto& [name, input] : warmup.inputs) {
    Dims shape;
    if (signature.max_batch_size > 0) shape.push_back(warmup.batch_size);
    for (const int64_t dim : input.dims) shape.push_back(dim);
    const std::optional<DataType> datatype = parse_datatype(input.datatype);
    check(datatype.has_value(), "model_warmup '", warmup.name, "', input '", name, "': data_type ", input.datatype,
          " is not supported");
    request.inputs.push_back(make_input(name, *datatype, std::move(shape), input.source, input.file, warmup.name));
  }
  return request;
}

std::vector<WarmupRequest> recorded(const ModelConfig::Warmup& warmup, const Signature& signature) {
  std::vector<WarmupRequest> requests;
  for (RecordedRequest& record : read_recorded_requests(warmup.recorded_file, kRecordLimits)) {
    WarmupRequest request{.name = concat(warmup.name, ", request ", requests.size()),
                          .inputs = std::move(record.inputs)};
    for (InferTensor& input : request.inputs) {
      if (input.tensor.defined()) input.tensor = read_only(input.tensor);
    }
    if (signature.max_batch_size > 0 && !request.inputs.empty() && !request.inputs[0].shape.empty()) {
      request.batch_size = request.inputs[0].shape[0];
    }
    requests.push_back(std::move(request));
  }
  return requests;
}

// Whether zeros, or examples, can be made for all required inputs.
bool has_complete_shapes(const Signature& signature) {
  bool has_any = false;
  for (const TensorSpec& spec : signature.inputs) {
    if (spec.is_optional) continue;
    if (spec.encoded && !spec.encoded->example().empty()) {
      has_any = true;
      continue;
    }
    if (!spec.datatype || *spec.datatype == DataType::kBytes || !spec.shape) return false;
    const size_t first = signature.max_batch_size > 0 ? 1 : 0;
    double bytes = static_cast<double>(size_of(*spec.datatype)) *
                   static_cast<double>(std::max<int64_t>(1, signature.max_batch_size));
    for (size_t i = first; i < spec.shape->size(); ++i) {
      if ((*spec.shape)[i] < 0) return false;
      bytes *= static_cast<double>((*spec.shape)[i]);
    }
    if (bytes > kMaxZeroBytes) return false;
    has_any = true;
  }
  return has_any;
}

bool has_only_zeros(const Tensor& tensor) {
  const Tensor dense = tensor.contiguous();
  const auto* bytes = static_cast<const char*>(dense.raw_data());
  return std::all_of(bytes, bytes + dense.size_bytes(), [](char byte) { return byte == 0; });
}

WarmupRequest zeros(int64_t batch_size, const Signature& signature) {
  WarmupRequest request{.name = concat("batch ", batch_size), .batch_size = batch_size, .is_configured = false};
  for (const TensorSpec& spec : signature.inputs) {
    if (spec.is_optional) continue;
    Dims shape = *spec.shape;
    if (signature.max_batch_size > 0) shape[0] = batch_size;
    std::replace(shape.begin(), shape.end(), int64_t{-1}, int64_t{1});  // the number of images
    request.inputs.push_back(make_input(spec.name, *spec.datatype, std::move(shape), Source::kZeros, "", request.name));
  }
  return request;
}

}  // namespace

WarmupRequest with_random_data(WarmupRequest request, bool only_zeros) {
  for (InferTensor& input : request.inputs) {
    if (!input.tensor.defined() || (only_zeros && !has_only_zeros(input.tensor))) continue;
    Tensor tensor = Tensor::empty(input.tensor.sizes(), input.tensor.dtype());
    fill_random(tensor);
    input.tensor = read_only(tensor);
  }
  return request;
}

std::vector<WarmupRequest> make_warmup(const Signature& signature, const ModelConfig& config,
                                       const std::string& model) {
  std::vector<WarmupRequest> requests;
  if (config.is_ensemble()) {
    check(config.warmups.empty(), "ensemble '", model, "' has model_warmup; the models of its steps may have");
    return requests;
  }
  const auto add = [&](WarmupRequest request) {
    add_server_inputs(signature, config, request);
    requests.push_back(finish(std::move(request), signature, model));
  };
  for (const ModelConfig::Warmup& warmup : config.warmups) {
    if (warmup.recorded_file.empty()) {
      add(configured(warmup, signature));
    } else {
      for (WarmupRequest& request : recorded(warmup, signature)) add(std::move(request));
    }
  }
  if (!requests.empty() || signature.keeps_state || !has_complete_shapes(signature)) return requests;
  std::set<int64_t> batch_sizes{1};
  if (signature.max_batch_size > 0) {
    if (config.dynamic_batching) {
      const std::vector<int64_t>& preferred = config.dynamic_batching->preferred_batch_sizes;
      batch_sizes.insert(preferred.begin(), preferred.end());
    }
    batch_sizes.insert(signature.max_batch_size);
  }
  for (const int64_t size : batch_sizes) requests.push_back(finish(zeros(size, signature), signature, model));
  return requests;
}

}  // namespace tensord::server
