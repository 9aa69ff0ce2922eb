#include "server/executor/strategies/batch_inputs.h"

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/tensor/device_copy.h"
#include "core/tensor/device_runtime.h"
#include "core/tensor/lend.h"
#include "core/tensor/memory/pinned_memory.h"

namespace tensord::server {
namespace {

// Reads the row-major bytes of an input sequentially, contiguous or scattered.
class ByteSource {
 public:
  explicit ByteSource(const InferTensor& input) {
    if (input.scattered) {
      pieces_ = input.scattered->pieces;
      return;
    }
    tensor_ = host_copy(input.tensor.contiguous());
    whole_ = {static_cast<const uint8_t*>(tensor_.raw_data()), tensor_.size_bytes()};
    pieces_ = {&whole_, 1};
  }
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  void copy_to(uint8_t* target, size_t count) {
    while (count > 0) {
      check_internal(!pieces_.empty(), "an input has fewer bytes than its shape requires");
      const std::span<const uint8_t> piece = pieces_.front().subspan(used_);
      const size_t part = std::min(count, piece.size());
      target = std::copy_n(piece.data(), part, target);
      count -= part;
      used_ += part;
      if (used_ == pieces_.front().size()) {
        pieces_ = pieces_.subspan(1);
        used_ = 0;
      }
    }
  }

 private:
  Tensor tensor_;
  std::span<const uint8_t> whole_;
  std::span<const std::span<const uint8_t>> pieces_;
  size_t used_ = 0;  // in the first piece
};

bool is_on_device(const InferTensor* input) { return input->tensor.defined() && !input->tensor.device().is_host(); }

// Copies a block of `sizes`, from dimension `dim` on, to a target with these byte strides. From dimension `last` on the
// block and the target are contiguous.
void copy_block(ByteSource& source, const Dims& sizes, const Dims& strides, size_t dim, size_t last, uint8_t* target) {
  if (dim == last) {
    source.copy_to(target, static_cast<size_t>(sizes[dim] * strides[dim]));
    return;
  }
  for (int64_t i = 0; i < sizes[dim]; ++i) {
    copy_block(source, sizes, strides, dim + 1, last, target + i * strides[dim]);
  }
}

void fill(const Tensor& tensor, double value) {
  dispatch_all(tensor.dtype(), "padding", [&]<class T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      check(value >= static_cast<double>(std::numeric_limits<T>::min()) &&
                value < static_cast<double>(std::numeric_limits<T>::max()) + 1,
            "parameter 'ragged_padding' is ", value, ", which ", name_of(tensor.dtype()), " cannot hold");
      std::fill_n(tensor.data<T>(), tensor.numel(), static_cast<T>(value));
    } else if constexpr (std::is_same_v<T, bool>) {
      std::fill_n(tensor.data<T>(), tensor.numel(), value != 0);
    } else {
      std::fill_n(tensor.data<T>(), tensor.numel(), static_cast<T>(static_cast<float>(value)));
    }
  });
}

}  // namespace

RaggedRules::RaggedRules(const Signature& signature, const ModelConfig& config)
    : is_ragged_(signature.inputs.size(), false),
      buckets_(config.ragged.buckets),
      padding_value_(config.ragged.padding_value) {
  std::sort(buckets_.begin(), buckets_.end());
  if (signature.max_batch_size <= 0) return;
  for (const ModelConfig::TensorConfig& input : config.inputs) {
    if (!input.allows_ragged_batch) continue;
    for (size_t i = 0; i < signature.inputs.size(); ++i) {
      if (!signature.inputs[i].answers_to(input.name)) continue;
      check(!signature.inputs[i].takes_bytes, "input '", input.name,
            "' has allow_ragged_batch, which is not supported for TYPE_STRING");
      is_ragged_[i] = any_ = true;
    }
  }
}

int64_t RaggedRules::bucket(int64_t size) const {
  if (buckets_.empty()) return -1;
  const auto found = std::lower_bound(buckets_.begin(), buckets_.end(), size);
  return found == buckets_.end() ? size : *found;
}

std::vector<int64_t> make_batch_key(const InferRequest& request, const RaggedRules& ragged) {
  std::vector<size_t> order(request.inputs.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto& indices = request.input_indices;
  std::ranges::sort(order, {}, [&](size_t i) { return indices[i]; });
  std::vector<int64_t> key;
  for (const size_t i : order) {
    const InferTensor& input = request.inputs[i];
    key.push_back(static_cast<int64_t>(indices[i]));
    key.push_back(static_cast<int64_t>(input.datatype));
    key.push_back(static_cast<int64_t>(input.shape.size()));
    for (size_t dim = 1; dim < input.shape.size(); ++dim) {
      key.push_back(ragged.is_ragged(indices[i]) ? ragged.bucket(input.shape[dim]) : input.shape[dim]);
    }
  }
  return key;
}

BatchInputs::BatchInputs(const Signature& signature, const RaggedRules& ragged, std::span<InferRequest* const> requests)
    : gathers_on_(signature.device.kind),
      tensors_(signature.inputs.size()),
      is_present_(signature.inputs.size(), false),
      copied_bytes_(requests.size(), 0) {
  for (const InferRequest* request : requests) {
    first_rows_.push_back(rows_);
    row_counts_.push_back(request->batch_size);
    rows_ += request->batch_size;
  }
  for (const size_t input : requests[0]->input_indices) {
    std::vector<const InferTensor*> parts;
    for (const InferRequest* request : requests) {
      const auto& indices = request->input_indices;
      const auto found = std::find(indices.begin(), indices.end(), input);
      check_internal(found != indices.end(), "requests with other inputs share a batch");
      parts.push_back(&request->inputs[static_cast<size_t>(found - indices.begin())]);
    }
    is_present_[input] = true;
    tensors_[input].name = parts[0]->name;
    tensors_[input].datatype = parts[0]->datatype;
    if (parts[0]->datatype == DataType::kBytes) {
      gather_strings(input, parts);
    } else {
      gather(input, ragged, parts);
    }
  }
  for (InferRequest* request : requests) request->inputs.clear();
  point();
}

bool BatchInputs::is_padded() const {
  return std::any_of(padded_.begin(), padded_.end(), [](const PaddedDim& padded) {
    return std::any_of(padded.own.begin(), padded.own.end(), [&](int64_t own) { return own != padded.size; });
  });
}

void BatchInputs::point() {
  pointers_.assign(tensors_.size(), nullptr);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (is_present_[i]) pointers_[i] = &tensors_[i];
  }
}

void BatchInputs::gather_strings(size_t input, std::span<const InferTensor* const> parts) {
  InferTensor& batch = tensors_[input];
  batch.shape = parts[0]->shape;
  if (!batch.shape.empty()) batch.shape[0] = rows_;
  for (size_t i = 0; i < parts.size(); ++i) {
    for (const std::string& text : parts[i]->strings) {
      if (parts.size() > 1) copied_bytes_[i] += text.size();
      batch.strings.push_back(text);
    }
  }
}

Dims BatchInputs::padded_shape(size_t input, const RaggedRules& ragged, std::span<const InferTensor* const> parts) {
  Dims shape = parts[0]->shape;
  if (parts.size() > 1) shape[0] = rows_;
  if (!ragged.is_ragged(input)) return shape;
  for (size_t dim = 1; dim < shape.size(); ++dim) {
    PaddedDim padded{input, dim, 0, {}};
    for (const InferTensor* part : parts) padded.own.push_back(part->shape[dim]);
    padded.size = *std::max_element(padded.own.begin(), padded.own.end());
    padded.size = std::max(padded.size, ragged.bucket(padded.size));
    shape[dim] = padded.size;
    padded_.push_back(std::move(padded));
  }
  return shape;
}

// Where a client's tensors are in a GPU's memory, the others of the batch are brought there.
void BatchInputs::gather_on_device(Device device, std::span<const InferTensor* const> parts, InferTensor& batch) {
  const DType dtype = *to_dtype(batch.datatype);
  const Tensor tensor = Tensor::empty(batch.shape, dtype, device);
  const Dims strides = contiguous_strides(batch.shape);
  for (size_t i = 0; i < parts.size(); ++i) {
    Tensor part = parts[i]->tensor;
    if (parts[i]->scattered) {
      part = Tensor::empty(parts[i]->shape, dtype);
      ByteSource(*parts[i]).copy_to(static_cast<uint8_t*>(part.raw_data()), part.size_bytes());
    }
    copied_bytes_[i] += part.size_bytes();
    tensor.as_view(parts[i]->shape, strides, first_rows_[i] * strides[0]).copy_from(part);
  }
  synchronize(device);  // the model runs in another stream
  batch.tensor = read_only(tensor);
}

void BatchInputs::gather(size_t input, const RaggedRules& ragged, std::span<const InferTensor* const> parts) {
  InferTensor& batch = tensors_[input];
  batch.shape = padded_shape(input, ragged, parts);
  if (parts.size() == 1 && !parts[0]->scattered && batch.shape == parts[0]->shape) {
    batch.tensor = parts[0]->tensor;
    batch.is_own = parts[0]->is_own;
    return;
  }
  const DType dtype = *to_dtype(batch.datatype);
  const auto has_padding = [&](const InferTensor* part) {
    return !std::equal(batch.shape.begin() + 1, batch.shape.end(), part->shape.begin() + 1, part->shape.end());
  };
  const bool is_padded = batch.shape.size() > 1 && std::any_of(parts.begin(), parts.end(), has_padding);
  const auto there = std::ranges::find_if(parts, is_on_device);
  if (there != parts.end() && !is_padded && !batch.shape.empty())
    return gather_on_device((*there)->tensor.device(), parts, batch);
  Tensor tensor =
      gathers_on_ == kCPU ? Tensor::empty(batch.shape, dtype) : empty_pinned(batch.shape, dtype, gathers_on_);
  if (is_padded) {
    fill(tensor, ragged.padding_value());
  }
  Dims strides = contiguous_strides(batch.shape);
  for (int64_t& stride : strides) stride *= static_cast<int64_t>(size_of(tensor.dtype()));
  for (size_t i = 0; i < parts.size(); ++i) {
    ByteSource source(*parts[i]);
    const Dims& sizes = parts[i]->shape;
    const size_t size_bytes = static_cast<size_t>(checked_numel(sizes)) * size_of(tensor.dtype());
    copied_bytes_[i] += size_bytes;
    if (size_bytes == 0) continue;
    auto* target = static_cast<uint8_t*>(tensor.raw_data());
    if (sizes.empty()) {
      source.copy_to(target, size_bytes);
      continue;
    }
    size_t last = 0;
    for (size_t dim = 1; dim < sizes.size(); ++dim) last = sizes[dim] == batch.shape[dim] ? last : dim;
    copy_block(source, sizes, strides, 0, last, target + first_rows_[i] * strides[0]);
  }
  batch.is_own = parts.size() == 1 && batch.shape == parts[0]->shape;
  batch.tensor = batch.is_own ? tensor : read_only(tensor);
}

InferTensor BatchInputs::rows_of(const InferTensor& batch, size_t request) const {
  const int64_t first = first_rows_[request], count = row_counts_[request];
  InferTensor out;
  out.name = batch.name;
  out.datatype = batch.datatype;
  out.shape = batch.shape;
  out.shape[0] = count;
  if (batch.tensor.defined()) {
    const Tensor& tensor = batch.tensor;
    Dims strides = tensor.strides();
    const int64_t offset = tensor.offset() + first * strides[0];
    out.tensor = tensor.as_view(out.shape, std::move(strides), offset);
  } else {
    const auto per_row = static_cast<ptrdiff_t>(batch.strings.size() / static_cast<size_t>(rows_));
    const auto begin = batch.strings.begin() + first * per_row;
    out.strings.assign(begin, begin + count * per_row);
  }
  return out;
}

BatchInputs BatchInputs::alone(size_t request) const {
  BatchInputs out;
  out.tensors_.resize(tensors_.size());
  out.is_present_ = is_present_;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (is_present_[i]) out.tensors_[i] = rows_of(tensors_[i], request);
  }
  for (const PaddedDim& padded : padded_) out.tensors_[padded.input].shape[padded.dim] = padded.own[request];
  for (InferTensor& input : out.tensors_) {
    if (!input.tensor.defined() || input.shape == input.tensor.sizes()) continue;
    Dims strides = input.tensor.strides();
    const int64_t offset = input.tensor.offset();
    input.tensor = input.tensor.as_view(input.shape, std::move(strides), offset).contiguous();
  }
  out.first_rows_ = {0};
  out.row_counts_ = {row_counts_[request]};
  out.copied_bytes_ = {copied_bytes_[request]};
  out.rows_ = row_counts_[request];
  out.point();
  return out;
}

void BatchInputs::cut_padding(InferTensor& output, const TensorSpec* spec, size_t request) const {
  const bool is_open = spec == nullptr || !spec->shape;
  for (size_t dim = 1; dim < output.shape.size(); ++dim) {
    if (!is_open && (dim >= spec->shape->size() || (*spec->shape)[dim] != -1)) continue;
    int64_t own = -1;
    for (const PaddedDim& padded : padded_) {
      if (padded.size != output.shape[dim]) continue;
      check(own == -1 || own == padded.own[request], "output '", output.name, "' has a dimension of ", padded.size,
            ", as two padded dimensions of the inputs that differ in a request");
      own = padded.own[request];
    }
    if (own == -1 || own == output.shape[dim]) continue;
    check(output.tensor.defined(), "output '", output.name, "' of BYTES cannot be cut to the unpadded size");
    output.shape[dim] = own;
    Dims strides = output.tensor.strides();
    const int64_t offset = output.tensor.offset();
    output.tensor = output.tensor.as_view(output.shape, std::move(strides), offset);
  }
}

std::vector<std::vector<InferTensor>> BatchInputs::split(std::vector<InferTensor> outputs,
                                                         const Signature& signature) const {
  const size_t requests = row_counts_.size();
  std::vector<std::vector<InferTensor>> out(requests);
  if (requests == 1) {
    out[0] = std::move(outputs);
  } else {
    for (const InferTensor& output : outputs) {
      check(!output.shape.empty() && output.shape[0] == rows_, "output '", output.name, "' has shape ",
            to_string(output.shape), " for a batch of ", rows_, ": with max_batch_size its first dimension must be ",
            "that of the inputs");
      for (size_t i = 0; i < requests; ++i) out[i].push_back(rows_of(output, i));
    }
  }
  if (!is_padded()) return out;
  for (size_t i = 0; i < requests; ++i) {
    for (InferTensor& output : out[i]) {
      const auto spec = std::find_if(signature.outputs.begin(), signature.outputs.end(),
                                     [&](const TensorSpec& candidate) { return candidate.answers_to(output.name); });
      cut_padding(output, spec == signature.outputs.end() ? nullptr : &*spec, i);
    }
  }
  return out;
}

}  // namespace tensord::server
