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

// What reading an archive's objects needs from the archive's compiled code.
struct ObjectHooks {
  // Finds classes, NamedTuples and enums by qualified name ("__torch__.M").
  ops::TypeResolver find_type;
  // Runs the class's __setstate__ on an object whose slots are all None; false when the class has none. Called
  // in the order of the archive: objects inside of an object come first. May be empty.
  std::function<bool(const ops::ObjectPtr& object, const ops::Value& state)> set_state;
  // The member of an enum that has this value. May be empty: members then have no name.
  std::function<ops::Value(const ops::TypePtr& type, const ops::Value& value)> enum_member;
  // Told of every tensor that the archive says requires a gradient. May be empty.
  std::function<void(const Tensor& tensor)> requires_grad = {};
  // Tensors get memory of their own instead of viewing the file. The same for all calls on one archive.
  bool copies_tensors = false;
  Device device = {};  // where tensors are put
};

// A TorchScript archive (torch.jit.save, PyTorch 1.4 to 2.x), open for reading. Tensors
// view the mapped file; it stays mapped while any of them lives, and in-place writes
// to them are not seen by the file. Immutable; thread-safe, but each call of constants()
// and object() makes new values over the same storages.
class ModelArchive {
 public:
  // Throws Error: kNotFound, kDataLoss (no archive, truncated, altered), kUnimplemented
  // (an archive of another kind, byte order or version), kResourceExhausted (limits).
  static ModelArchive open(const std::string& path, const ZipOptions& options = {});

  // The format number that PyTorch wrote: 1 … 10.
  int64_t version() const { return version_; }
  // The files code/**.py, in archive order.
  std::vector<SourceFile> sources() const;
  // The .debug_pkl files beside the sources, by the source's name: what they were made from. Those that are damaged, or
  // too large to be worth it, are left out.
  std::vector<std::pair<std::string, std::vector<AuthorLine>>> author_lines() const;
  // The items of constants.pkl: CONSTANTS.c0, c1 …
  std::vector<ops::Value> constants(const ObjectHooks& hooks) const;
  std::vector<ops::Value> constants(const ops::TypeResolver& find_type) const;
  // The module object, with every attribute in the slot of its name. Throws Error naming the class, attribute,
  // function or dtype that is not supported.
  ops::Value object(const ObjectHooks& hooks) const;
  // Names and bytes of extra/NAME entries are not read at load; ask for one. Throws Error{kNotFound}.
  std::string extra_file(const std::string& name) const;
  const std::shared_ptr<const ZipArchive>& file() const { return zip_; }

 private:
  explicit ModelArchive(std::shared_ptr<const ZipArchive> zip) : zip_(std::move(zip)) {}
  ops::Value read_pickle(const std::string& name, const ObjectHooks& hooks) const;

  std::shared_ptr<const ZipArchive> zip_;
  int64_t version_ = 0;
  // Storages by entry, so that constants, parameters and repeated loads share memory.
  struct StorageCache;
  std::shared_ptr<StorageCache> storages_;
};

}  // namespace tensord::jit
