#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "server/config/model_config.h"
#include "server/executor/model/model.h"
#include "server/executor/requests/request.h"

namespace tensord::server {

// How requests of different shapes come to one shape: inputs that allow ragged batches are padded at the ends of their
// dimensions, each to the largest of the batch, or to the next of the buckets where there are some.
class RaggedRules {
 public:
  // Throws Error{kInvalidArgument} for an input of BYTES.
  RaggedRules(const Signature& signature, const ModelConfig& config);

  bool is_ragged(size_t input) const { return input < is_ragged_.size() && is_ragged_[input]; }
  bool has_buckets() const { return any_ && !buckets_.empty(); }
  // The bucket for this size; the size itself above the largest; -1 without buckets: depends on the batch.
  int64_t bucket(int64_t size) const;
  double padding_value() const { return padding_value_; }

 private:
  std::vector<bool> is_ragged_;  // by the signature's inputs
  bool any_ = false;
  std::vector<int64_t> buckets_;  // ascending
  double padding_value_ = 0;
};

// What requests must have in common to share a batch: which inputs, and their types and shapes but for the first
// dimension and what is padded.
std::vector<int64_t> make_batch_key(const InferRequest& request, const RaggedRules& ragged);

// The inputs of some requests of one batch key, gathered row by row into one tensor for each input of the model. Owns
// what it gathered.
class BatchInputs {
 public:
  // Copies each payload once, or uses the memory of a request that is alone where it lies. The requests' inputs are
  // used up. Throws Error (out of memory).
  BatchInputs(const Signature& signature, const RaggedRules& ragged, std::span<InferRequest* const> requests);

  // One entry for each of the signature's inputs, null where it is not there.
  std::span<const InferTensor* const> inputs() const { return pointers_; }
  int64_t rows() const { return rows_; }
  // Bytes that were copied for a request.
  uint64_t copied_bytes(size_t request) const { return copied_bytes_[request]; }

  // Whether a request's inputs are no more what they were: it shares the batch, or is padded.
  bool is_changed() const { return row_counts_.size() > 1 || is_padded(); }
  // The rows of one request without padding, to be run without the others.
  BatchInputs alone(size_t request) const;
  // Takes apart what a run returned: for each request views of its rows, without what padding added to dimensions that
  // the signature leaves open. Throws Error{kInvalidArgument} where an output has no row for each of the batch.
  std::vector<std::vector<InferTensor>> split(std::vector<InferTensor> outputs, const Signature& signature) const;

 private:
  // A dimension that may be padded: its size in the batch, and in each request.
  struct PaddedDim {
    size_t input = 0, dim = 0;
    int64_t size = 0;
    std::vector<int64_t> own;
  };

  BatchInputs() = default;
  bool is_padded() const;
  void gather(size_t input, const RaggedRules& ragged, std::span<const InferTensor* const> parts);
  void gather_strings(size_t input, std::span<const InferTensor* const> parts);
  Dims padded_shape(size_t input, const RaggedRules& ragged, std::span<const InferTensor* const> parts);
  void point();
  InferTensor rows_of(const InferTensor& tensor, size_t request) const;
  void cut_padding(InferTensor& output, const TensorSpec* spec, size_t request) const;

  std::vector<InferTensor> tensors_;  // by the signature's inputs; undefined where it is not there
  std::vector<bool> is_present_;
  std::vector<const InferTensor*> pointers_;
  std::vector<int64_t> first_rows_;  // of each request
  std::vector<int64_t> row_counts_;
  std::vector<uint64_t> copied_bytes_;
  std::vector<PaddedDim> padded_;
  int64_t rows_ = 0;
};

}  // namespace tensord::server
