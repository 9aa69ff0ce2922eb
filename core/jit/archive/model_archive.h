#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/jit/archive/author_lines.h"
#include "core/jit/archive/zip.h"
#include "core/jit/ir/function.h"
#include "core/ops/value.h"

namespace tensord::jit {

// What reading the objects of an archive needs from its compiled code.
struct ObjectHooks {
  // Finds classes, NamedTuples and enums by qualified name ("__torch__.M").
  ops::TypeResolver find_type;
  // Runs the class's __setstate__ on an object whose slots are all None; returns false if the class has none. Called in
  // the order of the archive: nested objects come before the object that has them. May be empty.
  std::function<bool(const ops::ObjectPtr& object, const ops::Value& state)> set_state;
  // Returns the enum member with this value. May be empty: then members have no name.
  std::function<ops::Value(const ops::TypePtr& type, const ops::Value& value)> enum_member;
  // Called for every tensor that requires a gradient according to the archive. May be empty.
  std::function<void(const Tensor& tensor)> requires_grad = {};
  // Copies tensors instead of mapping the file. Must be the same for all calls on one archive.
  bool copies_tensors = false;
  Device device = {};  // the device for tensors
};

// A TorchScript archive (torch.jit.save, PyTorch 1.4 to 2.x) opened for reading. Tensors view the mapped file, which
// stays mapped while one of them exists; in-place writes do not change the file. Immutable and thread-safe. Each call
// of constants() and object() makes new values over the same storages.
class ModelArchive {
 public:
  // Throws Error: kNotFound, kDataLoss (not an archive, truncated, or corrupt), kUnimplemented (an archive of another
  // kind, byte order or version), kResourceExhausted (limits).
  static ModelArchive open(const std::string& path, const ZipOptions& options = {});

  // PyTorch's format version: 1 … 10.
  int64_t version() const { return version_; }
  // The files code/**.py, in archive order.
  std::vector<SourceFile> sources() const;
  // The .debug_pkl files by the name of the source they describe. Skips damaged files and those above a size limit.
  std::vector<std::pair<std::string, std::vector<AuthorLine>>> author_lines() const;
  // The items of constants.pkl: CONSTANTS.c0, c1 …
  std::vector<ops::Value> constants(const ObjectHooks& hooks) const;
  std::vector<ops::Value> constants(const ops::TypeResolver& find_type) const;
  // Reads the module object with all its attributes. Throws Error naming an unsupported class, attribute, function or
  // dtype.
  ops::Value object(const ObjectHooks& hooks) const;
  // Loading does not read the extra/NAME entries; this reads one of them. Throws Error{kNotFound}.
  std::string extra_file(const std::string& name) const;
  const std::shared_ptr<const ZipArchive>& file() const { return zip_; }

 private:
  explicit ModelArchive(std::shared_ptr<const ZipArchive> zip) : zip_(std::move(zip)) {}
  ops::Value read_pickle(const std::string& name, const ObjectHooks& hooks) const;

  std::shared_ptr<const ZipArchive> zip_;
  int64_t version_ = 0;
  // Storages by entry name, so that constants, parameters and repeated loads share memory.
  struct StorageCache;
  std::shared_ptr<StorageCache> storages_;
};

}  // namespace tensord::jit
