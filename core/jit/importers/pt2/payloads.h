#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/jit/archive/viewed_memory.h"
#include "core/jit/archive/zip.h"
#include "core/tensor/tensor.h"

namespace tensord::jit::pt2 {

struct Payload {
  Tensor tensor;
  bool requires_grad = false;
};

// The tensors of an archive, by their names in the lists of weights and constants. They view the mapped file, or, with
// `copies`, memory of their own; tensors of one entry share it.
class Payloads {
 public:
  Payloads(std::shared_ptr<const ZipArchive> zip, bool copies) : zip_(std::move(zip)), copies_(copies) {}

  // `folder` is "data/weights/" or "data/constants/", `list` is its entry with the names. Throws Error naming the
  // tensor; pickled objects are refused, not run.
  std::map<std::string, Payload> read(const std::string& folder, const std::string& list);
  // Does the same for an entry written by torch.save, as in PyTorch up to 2.8: a dict of tensors.
  std::map<std::string, Payload> read_pickled(const std::string& entry);
  // Replaces some of the tensors that were read, also in files written later.
  void replace(std::map<std::string, Payload>& payloads, const std::map<const TensorImpl*, Tensor>& replaced);
  // By entry of the archive.
  const std::map<std::string, Storage>& storages() const { return storages_; }

 private:
  Storage storage_of(const std::string& entry);

  std::shared_ptr<const ZipArchive> zip_;
  bool copies_;
  std::map<std::string, Storage> storages_;
  std::map<std::string, Tensor> tensors_;  // by entry, dtype and position in it
  ViewedMemory viewed_;
};

}  // namespace tensord::jit::pt2
