#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/jit/importers/format.h"
#include "core/jit/importers/onnx/proto.h"
#include "core/tensor/mapped_file.h"
#include "core/tensor/tensor.h"

namespace tensord::jit::onnx {

// Converts a TensorProto.DataType; nullopt for types that tensors do not support.
std::optional<DType> find_dtype(int64_t data_type);
// Whether it is INT4 or UINT4, which TensorReader reads as int8, although tensors do not have these types.
bool has_four_bits(int64_t data_type);
// "FLOAT8E4M3FN", or the number of an unknown type.
std::string data_type_name(int64_t data_type);
// Throws Error{kUnimplemented} that names the type.
DType to_dtype(int64_t data_type, const std::string& what);
// TensorProto.DataType of a dtype. Throws Error{kUnimplemented} if ONNX does not have it.
int32_t data_type_of(DType dtype);
// A TensorProto without its data, which must follow: the elements in row-major order.
std::string tensor_head(const std::string& name, const Tensor& tensor);

// Converts a model's TensorProtos to tensors. Data in a file, external or the model itself, is viewed in place if it is
// aligned. Throws Error: kDataLoss if sizes and data do not match, kInvalidArgument for a location outside of the
// model's folder, kUnimplemented for unsupported types.
class TensorReader {
 public:
  // `model` contains the bytes of raw_data; null for messages that are not in a mapped file. External data must be in
  // `folder`.
  TensorReader(std::shared_ptr<const MappedFile> model, std::string folder, const ReadOptions& options)
      : model_(std::move(model)),
        folder_(std::move(folder)),
        copies_(options.copies_tensors),
        copies_files_(options.copies_files) {}

  Tensor read(const TensorProto& proto);
  Tensor read_sparse(const SparseTensorProto& proto);
  // Reads a tensor attribute. Returns the same tensor each time, however often its function is called.
  Tensor read_attribute(const TensorProto& proto);
  Tensor read_attribute(const SparseTensorProto& proto);
  // All files except the model from which tensors were read so far.
  const std::map<std::string, std::shared_ptr<const MappedFile>>& external_files() const { return files_; }
  // Number of tensors read from other files so far.
  size_t external_count() const { return external_count_; }

 private:
  struct Place {
    std::shared_ptr<const MappedFile> file;  // null: in the caller's memory
    std::span<const uint8_t> bytes;
  };
  Place external(const TensorProto& proto, size_t size_bytes);
  const std::shared_ptr<const MappedFile>& external_file(const TensorProto& proto, const std::string& location);
  Tensor from_bytes(const TensorProto& proto, const Place& place, DType dtype, const Dims& sizes) const;
  Tensor read_four_bits(const TensorProto& proto);
  static Tensor from_fields(const TensorProto& proto, DType dtype, const Dims& sizes);

  std::shared_ptr<const MappedFile> model_;
  std::string folder_;
  bool copies_, copies_files_;
  size_t external_count_ = 0;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;  // by location
  std::unordered_map<const void*, Tensor> attributes_;              // by message
};

}  // namespace tensord::jit::onnx
