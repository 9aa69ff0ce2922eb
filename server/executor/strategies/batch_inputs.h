#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "server/config/model_config.h"
#include "server/executor/model/model.h"
#include "server/executor/requests/request.h"

namespace tensord::server {

// Ragged batching. Inputs that allow it are padded at the end of their dimensions to the largest size in the batch, or
// to the next larger bucket if buckets are configured.
class RaggedRules {
 public:
  // Throws Error{kInvalidArgument} for an input of BYTES.
  RaggedRules(const Signature& signature, const ModelConfig& config);

  bool is_ragged(size_t input) const { return input < is_ragged_.size() && is_ragged_[input]; }
  bool has_buckets() const { return any_ && !buckets_.empty(); }
  // The bucket for this size. The size itself if it is larger than all buckets; -1 without buckets, where the batch
  // decides.
  int64_t bucket(int64_t size) const;
  double padding_value() const { return padding_value_; }

 private:
  std::vector<bool> is_ragged_;  // by the signature's inputs
  bool any_ = false;
  std::vector<int64_t> buckets_;  // ascending
  double padding_value_ = 0;
};

// Key of requests that may share a batch: which inputs they have, and the types and shapes of these except for the
// batch dimension and padded dimensions.
std::vector<int64_t> make_batch_key(const InferRequest& request, const RaggedRules& ragged);

// The inputs of requests with one batch key, concatenated along the batch dimension into one tensor per input of the
// model. Owns these tensors.
class BatchInputs {
 public:
  // Copies each payload once; a single request's memory is used in place. Consumes the requests' inputs. Throws Error
  // (out of memory).
  BatchInputs(const Signature& signature, const RaggedRules& ragged, std::span<InferRequest* const> requests);

  // One entry per input of the signature; null where the input is absent.
  std::span<const InferTensor* const> inputs() const { return pointers_; }
  int64_t rows() const { return rows_; }
  // Bytes copied for a request.
  uint64_t copied_bytes(size_t request) const { return copied_bytes_[request]; }

  // Whether the model sees other tensors than the request sent, because it shares the batch or is padded.
  bool is_changed() const { return row_counts_.size() > 1 || is_padded(); }
  // The rows of one request without padding, to run it alone.
  BatchInputs alone(size_t request) const;
  // Splits the outputs of a run into views of each request's rows, without the padding in dimensions that the signature
  // leaves open. Throws Error{kInvalidArgument} if an output's first dimension is not the batch size.
  std::vector<std::vector<InferTensor>> split(std::vector<InferTensor> outputs, const Signature& signature) const;

 private:
  // A padded dimension: its size in the batch and in each request.
  struct PaddedDim {
    size_t input = 0, dim = 0;
    int64_t size = 0;
    std::vector<int64_t> own;
  };

  BatchInputs() = default;
  bool is_padded() const;
  void gather(size_t input, const RaggedRules& ragged, std::span<const InferTensor* const> parts);
  void gather_on_device(Device device, std::span<const InferTensor* const> parts, InferTensor& batch);
  void gather_strings(size_t input, std::span<const InferTensor* const> parts);
  Dims padded_shape(size_t input, const RaggedRules& ragged, std::span<const InferTensor* const> parts);
  void point();
  InferTensor rows_of(const InferTensor& tensor, size_t request) const;
  void cut_padding(InferTensor& output, const TensorSpec* spec, size_t request) const;

  DeviceKind gathers_on_ = kCPU;      // in memory that is pinned for such devices
  std::vector<InferTensor> tensors_;  // by the signature's inputs; undefined where absent
  std::vector<bool> is_present_;
  std::vector<const InferTensor*> pointers_;
  std::vector<int64_t> first_rows_;  // by request
  std::vector<int64_t> row_counts_;
  std::vector<uint64_t> copied_bytes_;
  std::vector<PaddedDim> padded_;
  int64_t rows_ = 0;
};

}  // namespace tensord::server
