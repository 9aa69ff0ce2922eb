#include "core/jit/importers/source/source_format.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/jit/archive/safetensors.h"
#include "core/jit/importers/source/source_library.h"

namespace tensord::jit {
namespace {

namespace fs = std::filesystem;
using ops::ClassType;
using ops::TypeKind;
using ops::Value;

// Sources of real models are smaller than 1 MB.
constexpr uintmax_t kMaxSource = 16 << 20;
constexpr int kMaxDepth = 100;  // nesting of modules
// Modules without tensors need no weights, so a few classes that contain each other twice could make any number of
// modules.
constexpr size_t kMaxModules = 100'000;
constexpr const char* kTraining = "training";

bool is_source(const std::string& path) {
  if (!path.ends_with(".py")) return false;
  std::ifstream file(path, std::ios::binary);
  char begin[2] = {};
  file.read(begin, 2);
  return file.gcount() < 2 || std::string_view(begin, 2) != "PK";  // otherwise it is an archive with a wrong name
}

std::string read_source(const std::string& path) {
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (error) fail(ErrorCode::kNotFound, path, ": ", error.message());
  if (size > kMaxSource)
    fail(ErrorCode::kResourceExhausted, path, ": ", size, " bytes of source are more than ", kMaxSource);
  std::ifstream file(path, std::ios::binary);
  std::string text(size, '\0');
  file.read(text.data(), static_cast<std::streamsize>(size));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

std::shared_ptr<const ClassType> module_class(const SourceLibrary& library, const std::string& name) {
  auto type = std::dynamic_pointer_cast<const ClassType>(library.find_type(name));
  return type && type->is_module() ? type : nullptr;
}

// The only class that is not an attribute of another class; the functions if there are no modules.
std::shared_ptr<const ClassType> find_root(const std::string& path, const SourceLibrary& library) {
  std::vector<std::string> modules;
  std::set<std::string> parts;
  for (const std::string& name : library.class_names()) {
    const auto type = module_class(library, name);
    if (!type) continue;
    modules.push_back(name);
    for (const auto& attribute : type->attributes()) parts.insert(attribute.type->name());
  }
  std::erase_if(modules, [&](const std::string& name) { return parts.contains(name); });
  if (modules.size() == 1) return module_class(library, modules.front());
  if (modules.empty() && parts.empty()) {
    if (auto functions = module_class(library, SourceLibrary::kFunctionsClass)) return functions;
    fail(ErrorCode::kInvalidArgument, path, ": has neither a class that derives from Module nor a function");
  }
  std::string names;
  for (const std::string& name : modules) names += (names.empty() ? "" : ", ") + name;
  fail(ErrorCode::kInvalidArgument, path, ": one class must be the model, of which no other has one as an attribute; ",
       modules.empty() ? "each is an attribute of another" : "there are " + names);
}

// Creates modules with the attributes that their classes declare, and with tensors by name.
class ObjectBuilder {
 public:
  ObjectBuilder(const std::string& path, const SourceLibrary& library,
                const std::vector<std::pair<std::string, Tensor>>& tensors)
      : path_(path), library_(library), tensors_(tensors.begin(), tensors.end()) {}

  ops::ObjectPtr build(const std::shared_ptr<const ClassType>& type, const std::string& prefix = {}, int depth = 0) {
    check(depth < kMaxDepth, path_, ": modules are nested more than ", kMaxDepth, " deep in each other");
    check(++module_count_ <= kMaxModules, path_, ": is of more than ", kMaxModules, " modules");
    auto object = make_intrusive<ops::Object>(type);
    for (size_t i = 0; i < type->attributes().size(); ++i) {
      object->slots[i] = value_of(*type, type->attributes()[i], prefix, depth);
    }
    return object;
  }
  void check_all_used() const {
    for (const auto& [name, tensor] : tensors_) {
      check(used_.contains(name), path_, ": its weights have '", name.substr(0, 200),
            "', but no module declares such a tensor");
    }
  }
  std::vector<Tensor> parameters;

 private:
  Value value_of(const ClassType& owner, const ops::Attribute& attribute, const std::string& prefix, int depth) {
    const std::string name = prefix + attribute.name;
    const ops::Type& type = *attribute.type;
    const bool is_optional = type.kind() == TypeKind::kOptional;
    const ops::Type& inner = is_optional ? *type.element() : type;
    if (inner.kind() == TypeKind::kTensor) return tensor_of(owner, attribute.name, name, is_optional);
    if (type.kind() == TypeKind::kClass) {
      if (const auto module = module_class(library_, type.name())) return Value(build(module, name + ".", depth + 1));
    }
    if (type.kind() == TypeKind::kBool && attribute.name == kTraining) return Value(false);
    if (is_optional) return {};
    fail(ErrorCode::kInvalidArgument, path_, ": ", owner.name(), ".", attribute.name, " is a ", type.str(),
         ", which a file of weights does not have; give it a value: ", attribute.name, ": ", type.str(), " = …");
  }
  Value tensor_of(const ClassType& owner, const std::string& attribute, const std::string& name, bool is_optional) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) {
      if (is_optional) return {};
      fail(ErrorCode::kInvalidArgument, path_, ": its weights have no '", name, "', which ", owner.name(), " declares",
           tensors_.empty() ? "; there is no weights.safetensors, model.safetensors or weights.pt beside it" : "");
    }
    used_.insert(name);
    if (std::ranges::find(owner.parameter_names, attribute) != owner.parameter_names.end())
      parameters.push_back(found->second);
    return Value(found->second);
  }

  const std::string& path_;
  const SourceLibrary& library_;
  std::map<std::string, Tensor> tensors_;
  std::set<std::string> used_;
  size_t module_count_ = 0;
};

void collect(const ops::ObjectPtr& object, const std::string& prefix,
             std::vector<std::pair<std::string, Tensor>>& out) {
  for (size_t i = 0; i < object->slots.size(); ++i) {
    const std::string name = prefix + object->type->attributes()[i].name;
    if (object->slots[i].is_strided()) out.emplace_back(name, object->slots[i].to_tensor());
    if (object->slots[i].is_object()) collect(object->slots[i].to_object(), name + ".", out);
  }
}

// Writes the source with its weights beside it.
void save(const std::string& path, const std::string& text, const ops::ObjectPtr& object) {
  std::vector<std::pair<std::string, Tensor>> tensors;
  collect(object, {}, tensors);
  write_safetensors((fs::path(path).parent_path() / "weights.safetensors").string(), tensors);
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

LoadedModel read(const std::string& path, const ReadOptions& options) {
  const std::string place = fs::absolute(path).string();
  if (options.weights) return compile_source(place, read_source(path), options.weights->tensors());
  return compile_source(place, read_source(path), {});
}

}  // namespace

LoadedModel compile_source(const std::string& place, const std::string& text,
                           const std::vector<std::pair<std::string, Tensor>>& tensors) {
  auto library = std::make_unique<SourceLibrary>(place, text);
  ObjectBuilder builder(place, *library, tensors);
  LoadedModel model;
  model.object = builder.build(find_root(place, *library));
  builder.check_all_used();
  model.functions = std::move(library);
  model.with_gradient = std::move(builder.parameters);
  model.save = [text, object = model.object](const std::string& to) { save(to, text, object); };
  return model;
}

const ModelFormat kSourceFormat = {"TorchScript source", "pytorch_libtorch", "model.py", is_source, read};

}  // namespace tensord::jit
