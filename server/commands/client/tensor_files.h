#pragma once

#include <tensord/client/tensor.h>

#include <string>
#include <utility>
#include <vector>

// NumPy's files as the client's tensors, and back.
namespace tensord::server {

using NamedTensors = std::vector<std::pair<std::string, client::Tensor>>;

// Numbers, booleans and texts (dtypes S and U) of at most 2 GB. Files are taken to be hostile. Throws Error, or
// client::InvalidArgumentError, that starts with the path.
client::Tensor read_npy(const std::string& path);
// Of numpy.savez and savez_compressed, by their names there.
NamedTensors read_npz_tensors(const std::string& path);

// Texts become NumPy's dtype S, which loses zero bytes at their ends, BF16 becomes float32. Throws Error.
void write_npy(const std::string& path, const client::Tensor& tensor);
void write_npz(const std::string& path, const NamedTensors& tensors);

}  // namespace tensord::server
