#include "core/tensor/memory/shared_tensor.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "core/tensor/memory/shared_memory.h"

namespace tensord {
namespace {

// Copies the bytes to shared memory, with the same version counter: autograd compares it with what it saved.
Storage moved_storage(const StorageImpl& from) {
  // A file cannot be empty, so a storage without bytes gets a file of one byte.
  Storage memory = allocate_storage_from(shared_memory_allocator(), std::max<size_t>(from.size_bytes(), 1));
  Storage to = memory;
  if (from.size_bytes() == 0) to = wrap_storage(memory->data(), 0, [memory] {});
  if (from.size_bytes() > 0) std::memcpy(to->data(), from.data(), from.size_bytes());
  while (to->version() != from.version()) to->bump_version();
  return to;
}

// The compiler assumes that a bool is 0 or 1, whatever the other process wrote.
void check_bools(const Storage& storage, const Tensor& tensor) {
  const Tensor bytes =
      Tensor::from_storage(storage, tensor.sizes(), tensor.strides(), tensor.offset(), DType::kUInt8).contiguous();
  if (bytes.numel() == 0) return;
  const auto* const data = bytes.data<uint8_t>();
  check(std::all_of(data, data + bytes.numel(), [](uint8_t byte) { return byte <= 1; }),
        "open_shared: a tensor of bool has bytes that are neither 0 nor 1");
}

}  // namespace

bool is_shared(const Tensor& tensor) { return shared_place(tensor.storage()).has_value(); }

void share_memory_(const Tensor& tensor) {
  check(!tensor.is_meta(), "share_memory_: a tensor without memory (meta or sparse) cannot be shared");
  if (!tensor.device().is_host()) {
    fail(ErrorCode::kUnimplemented, "share_memory_: memory of ", to_string(tensor.device()),
         " cannot be shared; copy the tensor to the host first");
  }
  if (is_shared(tensor)) return;
  check(
      !tensor.impl()->is_inference,
      "share_memory_: a tensor made in inference mode, as those of a loaded model are, keeps its place, which runs of "
      "models remember; share a clone() made outside of it");
  const uint32_t others = tensor.storage()->use_count() - 1;
  if (others > 0) {
    fail(ErrorCode::kFailedPrecondition, "share_memory_: the tensor's memory is held by ", others,
         " more (views, arrays over it, a model's runs), which would keep the old one; share it before they are made, "
         "or "
         "share a clone()");
  }
  tensor.impl()->storage = moved_storage(*tensor.storage());
}

SharedTensor share(const Tensor& tensor) {
  share_memory_(tensor);
  const std::optional<SharedPlace> place = shared_place(tensor.storage());
  const auto item = static_cast<uint64_t>(size_of(tensor.dtype()));
  check_internal(place && place->offset_bytes % item == 0, "share: the memory lies at a part of an element");
  return {place->file,
          place->file_bytes,
          tensor.sizes(),
          tensor.strides(),
          static_cast<int64_t>(place->offset_bytes / item) + tensor.offset(),
          tensor.dtype()};
}

Tensor open_shared(const SharedTensor& shared) {
  check(shared.file != nullptr, "open_shared: there is no descriptor");
  const DType dtype = dtype_from_number(static_cast<int64_t>(shared.dtype));
  const Storage storage = map_shared(shared.file->get(), shared.file_bytes);
  check(shared.offset <= static_cast<int64_t>(shared.file_bytes / size_of(dtype)), "open_shared: offset ",
        shared.offset, " lies outside of ", shared.file_bytes, " bytes");
  Tensor out = Tensor::from_storage(storage, shared.sizes, shared.strides, shared.offset, dtype);
  if (dtype == DType::kBool) check_bools(storage, out);
  return out;
}

}  // namespace tensord
