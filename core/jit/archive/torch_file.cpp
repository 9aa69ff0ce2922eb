#include "core/jit/archive/torch_file.h"

#include <map>

#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "core/jit/archive/pickle.h"
#include "core/jit/archive/zip_writer.h"

namespace tensord::jit {

ops::Value load_torch_file(const std::string& path, const ZipOptions& options) {
  const auto zip = ZipArchive::open(path, options);
  check_byte_order(*zip);
  std::map<std::string, Storage> storages;
  UnpickleContext context;
  context.source = path;
  context.infer_container_types = true;
  if (!is_inference_mode()) {
    context.requires_grad = [](const Tensor& tensor) { autograd::set_requires_grad(tensor); };
  }
  context.storage = [&](const std::string& key) {
    Storage& storage = storages[key];
    if (!storage) storage = zip->storage(zip->at("data/" + key));
    return storage;
  };
  return unpickle(zip->read(zip->at("data.pkl")), context).value;
}

void save_torch_file(const std::string& path, const ops::Value& value) {
  std::vector<PickledStorage> storages;
  const std::string text = pickle(value, &storages);
  ZipWriter writer(path);
  writer.add("archive/data.pkl", text);
  writer.add("archive/byteorder", "little");
  for (const PickledStorage& entry : storages) {
    const char* data = static_cast<const char*>(entry.storage->data()) + entry.offset_bytes;
    writer.add("archive/data/" + entry.key, {data, entry.size_bytes});
  }
  writer.add("archive/version", "3\n");
  writer.finish();
}

}  // namespace tensord::jit
