#pragma once

#include <tensord/client/tensor.h>

#include <string>
#include <utility>
#include <vector>

// Reads and writes client tensors as NumPy files.
namespace tensord::server {

using NamedTensors = std::vector<std::pair<std::string, client::Tensor>>;

// Reads numbers, booleans and strings (dtypes S and U) of at most 2 GB. Files are untrusted. Throws Error, or
// client::InvalidArgumentError, that starts with the path.
client::Tensor read_npy(const std::string& path);
// Reads a file of numpy.savez or savez_compressed; tensors have the file's names.
NamedTensors read_npz_tensors(const std::string& path);

// Strings become dtype S, which loses trailing zero bytes; BF16 becomes float32. Throws Error.
void write_npy(const std::string& path, const client::Tensor& tensor);
void write_npz(const std::string& path, const NamedTensors& tensors);

}  // namespace tensord::server
