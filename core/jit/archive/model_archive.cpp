#include "core/jit/archive/model_archive.h"

#include <charconv>
#include <map>

#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/jit/archive/conform.h"
#include "core/jit/archive/pickle.h"
#include "core/tensor/device_runtime.h"

namespace tensord::jit {
namespace {

constexpr int64_t kMaxVersion = 10;
constexpr std::string_view kCode = "code/";

int64_t read_version(const ZipArchive& zip) {
  const ZipArchive::Entry* entry = zip.find("version");
  if (!entry) entry = zip.find(".data/version");
  if (!entry) fail(ErrorCode::kDataLoss, zip.path(), ": has no version: not a TorchScript archive");
  const std::string text = zip.read(*entry);
  int64_t version = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
  const std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
  if (error != std::errc() || (!rest.empty() && rest != "\n") || version < 1) {
    fail(ErrorCode::kDataLoss, zip.path(), ": the version is not a number");
  }
  if (version > kMaxVersion) {
    fail(ErrorCode::kUnimplemented, zip.path(), ": archive version ", version, " is newer than the newest known, ",
         kMaxVersion);
  }
  return version;
}

// Describes a file of torch.save by the first class in its pickle, and says how to convert the file.
std::string saved_without_code(const ZipArchive& zip) {
  constexpr uint64_t kMaxPickle = 16 << 20;
  const ZipArchive::Entry& entry = *zip.find("data.pkl");
  if (entry.size > kMaxPickle) return {};
  const std::string pickle = zip.read(entry);
  const std::string_view first = std::string_view(pickle).substr(0, 64);
  const bool has_module =
      pickle.find("\n_parameters") != std::string::npos || pickle.find("_backward_hooks") != std::string::npos;
  constexpr std::string_view kExport =
      "torch.jit.script(model.eval()).save('model.pt'), or torch.export.save(torch.export.export(model.eval(), "
      "inputs), "
      "'model.pt2')";
  if (has_module) {
    return concat("; it is a pickled module, which needs its class: load it in Python, and write ", kExport);
  }
  if (first.find("_rebuild_tensor") != std::string_view::npos) return "; it is a tensor and no model";
  if (pickle.find("_rebuild_tensor") == std::string::npos) return "; it holds no weights either";
  const char* what = first.starts_with(
                         "\x80\x02"
                         "ccollections\nOrderedDict")
                         ? "a state dict, weights by name"
                         : "a dict of weights and other things, a checkpoint perhaps";
  return concat("; it is ", what,
                ": load it into the model in Python (model.load_state_dict(torch.load(FILE)), or the "
                "entry of it that is the state dict), and write ",
                kExport);
}

void check_kind(const ZipArchive& zip) {
  if (!zip.find("data.pkl")) fail(ErrorCode::kDataLoss, zip.path(), ": has no data.pkl: not a TorchScript archive");
  for (const ZipArchive::Entry& entry : zip.entries()) {
    if (entry.name.starts_with(kCode)) return;
  }
  fail(ErrorCode::kDataLoss, zip.path(), ": has no code: written by torch.save, not by torch.jit.save",
       saved_without_code(zip));
}

Storage copy_of(const StorageImpl& from, Device device) {
  Storage storage = allocate_storage(from.size_bytes(), device);
  if (from.size_bytes() > 0) {
    device_runtime(device).copy(storage->data(), device, from.data(), from.device(), from.size_bytes(),
                                current_stream(device));
  }
  return storage;
}

// Fills the object's slots from a state dict, by attribute name.
void fill_object(const std::string& source, Conformer& conformer, ops::Object& object, const ops::Value& state) {
  const std::string& class_name = object.type->name();
  if (!state.is_dict()) {
    fail(ErrorCode::kUnimplemented, source, ": class '", class_name, "' saved custom state (", state.tag_name(),
         ") but has no __setstate__");
  }
  const ops::DictObject& values = *state.to_dict();
  const auto& attributes = object.type->attributes();
  for (size_t i = 0; i < attributes.size(); ++i) {
    const auto found = values.find(ops::Value(attributes[i].name));
    if (found < 0) {
      fail(ErrorCode::kDataLoss, source, ": an object of class '", class_name, "' has no attribute '",
           attributes[i].name, "'");
    }
    try {
      object.slots.at(i) = conformer.conform(values.items()[static_cast<size_t>(found)].second, attributes[i].type);
    } catch (const Error& error) {
      throw Error(error.code(),
                  concat(error.what(), " (attribute '", attributes[i].name, "' of class '", class_name, "')"));
    }
  }
}

}  // namespace

struct ModelArchive::StorageCache {
  Mutex mutex;
  std::map<std::string, Storage> storages TENSORD_GUARDED_BY(mutex);  // by entry name
};

ModelArchive ModelArchive::open(const std::string& path, const ZipOptions& options) {
  ModelArchive archive(ZipArchive::open(path, options));
  check_kind(*archive.zip_);
  check_byte_order(*archive.zip_);
  archive.version_ = read_version(*archive.zip_);
  archive.storages_ = std::make_shared<StorageCache>();
  return archive;
}

std::vector<SourceFile> ModelArchive::sources() const {
  std::vector<SourceFile> files;
  for (const ZipArchive::Entry& entry : zip_->entries()) {
    if (entry.name.starts_with(kCode) && entry.name.ends_with(".py")) files.push_back({entry.name, zip_->read(entry)});
  }
  return files;
}

std::vector<std::pair<std::string, std::vector<AuthorLine>>> ModelArchive::author_lines() const {
  constexpr uint64_t kMaxBytes = 32 << 20;
  constexpr std::string_view kDebug = ".debug_pkl";
  std::vector<std::pair<std::string, std::vector<AuthorLine>>> out;
  uint64_t bytes = 0;
  for (const ZipArchive::Entry& entry : zip_->entries()) {
    if (!entry.name.starts_with(kCode) || !entry.name.ends_with(kDebug)) continue;
    bytes += entry.size;
    if (bytes > kMaxBytes) break;
    std::vector<AuthorLine> lines = read_author_lines(zip_->read(entry));
    if (!lines.empty()) out.emplace_back(entry.name.substr(0, entry.name.size() - kDebug.size()), std::move(lines));
  }
  return out;
}

ops::Value ModelArchive::read_pickle(const std::string& name, const ObjectHooks& hooks) const {
  UnpickleContext context;
  context.source = concat(zip_->path(), ": ", name, ".pkl");
  context.find_type = hooks.find_type;
  context.enum_member = hooks.enum_member;
  context.requires_grad = hooks.requires_grad;
  context.storage = [&](const std::string& key) {
    const std::string entry = concat(name, "/", key);
    MutexLock lock(storages_->mutex);
    Storage& storage = storages_->storages[entry];
    if (!storage) {
      storage = zip_->storage(zip_->at(entry));
      if (hooks.copies_tensors || !hooks.device.is_host()) storage = copy_of(*storage, hooks.device);
    }
    return storage;
  };
  Unpickled unpickled = unpickle(zip_->read(zip_->at(name + ".pkl")), context);
  Conformer conformer(context.source);
  for (const auto& [object, state] : unpickled.states) {
    if (hooks.set_state && hooks.set_state(object, state)) continue;
    fill_object(context.source, conformer, *object, state);
  }
  return unpickled.value;
}

std::vector<ops::Value> ModelArchive::constants(const ObjectHooks& hooks) const {
  if (!zip_->find("constants.pkl")) return {};
  const ops::Value value = read_pickle("constants", hooks);
  if (value.is_list()) return value.to_list()->items;
  if (!value.is_tuple())
    fail(ErrorCode::kDataLoss, zip_->path(), ": constants.pkl holds a ", value.tag_name(), ", not a tuple");
  return value.to_tuple()->items;
}

std::vector<ops::Value> ModelArchive::constants(const ops::TypeResolver& find_type) const {
  return constants(ObjectHooks{find_type, nullptr, nullptr});
}

ops::Value ModelArchive::object(const ObjectHooks& hooks) const {
  ops::Value value = read_pickle("data", hooks);
  if (!value.is_object())
    fail(ErrorCode::kDataLoss, zip_->path(), ": data.pkl holds a ", value.tag_name(), ", not a module");
  return value;
}

std::string ModelArchive::extra_file(const std::string& name) const {
  const ZipArchive::Entry* entry = zip_->find("extra/" + name);
  if (!entry) fail(ErrorCode::kNotFound, zip_->path(), ": has no extra file ", name);
  return zip_->read(*entry);
}

}  // namespace tensord::jit
