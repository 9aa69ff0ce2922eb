#include "core/jit/importers/pt2/payloads.h"

#include <cstring>

#include <set>

#include "core/base/error.h"
#include "core/jit/archive/check_bools.h"
#include "core/jit/archive/pickle.h"
#include "core/jit/importers/new_weights.h"
#include "core/jit/importers/pt2/enums.h"
#include "core/jit/importers/pt2/json.h"

namespace tensord::jit::pt2 {
namespace {

Storage copy_of(const StorageImpl& from) {
  Storage storage = allocate_storage(from.size_bytes(), {});
  if (from.size_bytes() > 0) std::memcpy(storage->data(), from.data(), from.size_bytes());
  return storage;
}

int64_t fixed_size(const Json& value, const std::string& where) { return int_member(value, "as_int", where); }

Dims read_dims(const Json& meta, const char* name, const std::string& where) {
  Dims dims;
  for (const Json& item : array_member(meta, name, where)) dims.push_back(fixed_size(item, concat(where, ": ", name)));
  return dims;
}

}  // namespace

Storage Payloads::storage_of(const std::string& entry) {
  Storage& storage = storages_[entry];
  if (!storage) {
    storage = zip_->storage(zip_->at(entry));
    if (copies_ && storage) storage = copy_of(*storage);
  }
  return storage;
}

std::map<std::string, Payload> Payloads::read_pickled(const std::string& entry) {
  const std::shared_ptr<const ZipArchive> inner = zip_->open_inner(zip_->at(entry));
  check_byte_order(*inner);
  std::map<std::string, Storage> storages;
  std::set<const TensorImpl*> with_gradient;
  UnpickleContext context;
  context.source = inner->path();
  context.infer_container_types = true;
  context.requires_grad = [&](const Tensor& tensor) { with_gradient.insert(tensor.impl()); };
  context.storage = [&](const std::string& key) {
    Storage& storage = storages[key];
    if (!storage) {
      storage = inner->storage(inner->at("data/" + key));
      if (copies_) storage = copy_of(*storage);
    }
    return storage;
  };
  const ops::Value value = unpickle(inner->read(inner->at("data.pkl")), context).value;
  if (!value.is_dict()) fail(ErrorCode::kDataLoss, inner->path(), ": holds a ", value.tag_name(), ", not a dict");
  std::map<std::string, Payload> payloads;
  for (const auto& [name, item] : value.to_dict()->items()) {
    if (!name.is_string() || !item.is_strided()) {
      fail(ErrorCode::kUnimplemented, inner->path(), ": holds a ", item.tag_name(),
           ", which is not a tensor with a name");
    }
    const Tensor& tensor = item.to_tensor();
    payloads[name.to_string()] = {tensor, with_gradient.contains(tensor.impl())};
  }
  return payloads;
}

std::map<std::string, Payload> Payloads::read(const std::string& folder, const std::string& list) {
  const std::string source = concat(zip_->path(), ": ", folder, list);
  const Json root = parse_json(zip_->read(zip_->at(folder + list)), source);
  std::map<std::string, Payload> payloads;
  const Json& config = object_member(root, "config", source);
  for (auto it = config.begin(); it != config.end(); ++it) {
    const std::string where = concat(source, ": '", it.key(), "'");
    const std::string path = string_member(it.value(), "path_name", where);
    if (path.starts_with("custom_obj_") || path.starts_with("opaque_obj_")) {
      fail(ErrorCode::kUnimplemented, where, " is a custom object, which is not supported");
    }
    if (bool_member(it.value(), "use_pickle", where)) {
      fail(ErrorCode::kUnimplemented, where, " is a pickled tensor (a subclass of Tensor), which is not supported");
    }
    const Json& meta = object_member(it.value(), "tensor_meta", where);
    const int64_t layout = int_member(meta, "layout", where);
    if (layout != kStridedLayout) {
      to_layout(layout, where);
      fail(ErrorCode::kUnimplemented, where, ": its layout is not supported");
    }
    const DType dtype = to_dtype(int_member(meta, "dtype", where), where);
    const Dims sizes = read_dims(meta, "sizes", where);
    const Dims strides = read_dims(meta, "strides", where);
    const int64_t offset = fixed_size(object_member(meta, "storage_offset", where), where);
    Payload payload;
    payload.requires_grad = bool_member(meta, "requires_grad", where);
    // Tied parameters are one tensor with several names.
    Tensor& known = tensors_[concat(folder, path, " ", name_of(dtype), to_string(sizes), to_string(strides), offset)];
    try {
      if (!known) {
        known = Tensor::from_storage(storage_of(folder + path), sizes, strides, offset, dtype);
        viewed_.add(known, where);
        check_bools(known, "its data");
      }
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kResourceExhausted) throw;
      const ErrorCode code = error.code() == ErrorCode::kInvalidArgument ? ErrorCode::kDataLoss : error.code();
      throw Error(code, concat(where, ": ", error.what()));
    }
    payload.tensor = known;
    payloads.emplace(it.key(), std::move(payload));
  }
  return payloads;
}

void Payloads::replace(std::map<std::string, Payload>& payloads, const std::map<const TensorImpl*, Tensor>& replaced) {
  for (auto& [name, payload] : payloads) {
    const auto found = replaced.find(payload.tensor.impl());
    if (found == replaced.end()) continue;
    // If other tensors share the entry, they must see the change too.
    if (!is_whole_storage(payload.tensor) || !is_whole_storage(found->second)) {
      payload.tensor.copy_from(found->second);
      continue;
    }
    for (auto& [entry, storage] : storages_) {
      if (storage == payload.tensor.storage()) storage = found->second.storage();
    }
    payload.tensor = found->second;
  }
}

}  // namespace tensord::jit::pt2
