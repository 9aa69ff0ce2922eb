#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

// The readers behind read_data_file(), one for each kind of file. All take the file to be hostile, and throw Error
// that starts with the path: kNotFound, kDataLoss (truncated or malformed), kUnimplemented (a dtype that tensors do
// not have), kInvalidArgument (a cell that is no number, with line and column).
namespace tensord::server {

using NamedArrays = std::vector<std::pair<std::string, Tensor>>;

// A zip file of .npy arrays, as numpy.savez and savez_compressed write it. Arrays without a first dimension too.
NamedArrays read_npz(const std::string& path);

// Tensors lie in the mapped file where they are aligned for their dtype.
NamedArrays read_safetensors(const std::string& path);

// A header line, then numbers, separated by commas; fields may be quoted. A column becomes int64 when all of it is
// integers, else float64. Columns named x.0, x.1 … x.n-1 become one array x of n columns, float64 when one of them is.
NamedArrays read_csv(const std::string& path);

// What torch.save wrote of a dict of tensors, or of a list or tuple of them ("0", "1" …).
NamedArrays read_torch_file(const std::string& path);

// Requests that `--capture-dir` kept (server/executor/requests/recorded_requests.h): inputs, and outputs where they
// were kept, of all requests joined along their first dimension; an output named like an input becomes "output.NAME".
// What was kept of one model, with rows of one shape.
NamedArrays read_requests(const std::string& path);

// A file mapped for as long as this lives. Writes to it stay in this process. The file must not be shortened.
class MappedFile {
 public:
  // Throws Error: kNotFound, kInvalidArgument (no regular file), kDataLoss (empty), kResourceExhausted.
  static std::shared_ptr<MappedFile> open(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  char* data() const { return data_; }
  size_t size() const { return size_; }
  std::string_view text() const { return {data_, size_}; }

 private:
  MappedFile(char* data, size_t size) : data_(data), size_(size) {}
  char* const data_;
  const size_t size_;
};

}  // namespace tensord::server
