#include "core/jit/archive/model_writer.h"

#include <filesystem>
#include <map>
#include <tuple>
#include <vector>

#include "core/base/error.h"
#include "core/jit/archive/pickle.h"
#include "core/jit/archive/pickle_writer.h"
#include "core/jit/archive/storage_types.h"
#include "core/jit/archive/zip_writer.h"
#include "core/ops/quantized.h"
#include "core/ops/run.h"
#include "core/ops/sparse.h"

namespace tensord::jit {
namespace {

using ops::TypeKind;
using ops::Value;

constexpr int kMaxModuleDepth = 1000;
constexpr const char* kPackedLinear = "__torch__.torch.classes.quantized.LinearPackedParamsBase";

// Pickles a module. Unlike torch.save, this format stores the types of lists and dicts, and stores an object as a class
// and a dict of its attributes.
class ModulePickler : PickleWriter {
 public:
  explicit ModulePickler(const ModelWriterHooks& hooks) : hooks_(hooks) {}

  std::string run(const ops::ObjectPtr& object) {
    write(Value(object), 0);
    out_ += '.';
    return std::move(out_);
  }
  const std::vector<PickledStorage>& storages() const { return storages_; }

 private:
  void write(const Value& value, int depth) {
    if (depth > kMaxModuleDepth) {
      fail(ErrorCode::kResourceExhausted, "a module's values are nested more than ", kMaxModuleDepth, " deep");
    }
    switch (value.tag()) {
      case Value::Tag::kNone: out_ += 'N'; return;
      case Value::Tag::kBool: out_ += value.to_bool() ? '\x88' : '\x89'; return;
      case Value::Tag::kInt: write_int(value.to_int()); return;
      case Value::Tag::kFloat: write_float(value.to_float()); return;
      case Value::Tag::kComplex:
        write_global("builtins", "complex");
        out_ += '(';
        write_float(value.to_complex().real());
        write_float(value.to_complex().imag());
        out_ += "tR";
        return;
      case Value::Tag::kString: write_string(value.to_string()); return;
      case Value::Tag::kDevice: write_device(value.to_device()); return;
      case Value::Tag::kTensor:
        if (const ops::SparseTensor* sparse = ops::as_sparse(value)) return write_sparse(*sparse);
        if (const ops::QuantizedTensor* quantized = ops::as_quantized(value)) return write_quantized(*quantized);
        return write_tensor(value.to_tensor());
      case Value::Tag::kList: write_list(value, depth); return;
      case Value::Tag::kTuple: write_tuple(*value.to_tuple(), depth); return;
      case Value::Tag::kDict: write_dict(value, depth); return;
      case Value::Tag::kEnum:
        write_class(value.to_enum()->type->name());
        write(value.to_enum()->value, depth + 1);
        out_ += 'R';
        return;
      case Value::Tag::kObject: write_object(value.to_object(), depth); return;
      case Value::Tag::kOpaque: write_packed(value, depth); return;
      default:
        fail(ErrorCode::kUnimplemented, "an attribute of type ", ops::type_of(value)->str(), " cannot be written");
    }
  }

  // "__torch__.a.B" is class B of module __torch__.a.
  void write_class(const std::string& qualified_name) {
    const size_t dot = qualified_name.rfind('.');
    check(dot != std::string::npos, "class '", qualified_name, "' cannot be written: its name has no module");
    write_global(qualified_name.substr(0, dot), qualified_name.substr(dot + 1));
  }

  void write_tensor(const Tensor& given) {
    if (write_known(given.impl())) return;
    if (given.is_meta() || given.device().kind != kCPU) {
      fail(ErrorCode::kFailedPrecondition, "a tensor on ", to_string(given.device()), " cannot be written");
    }
    // Memory that tensord does not own (of a request) may hold more than this tensor, so the tensor is copied.
    const Tensor tensor = given.storage()->is_writable() ? given : given.clone();
    write_global("torch._utils", "_rebuild_tensor_v2");
    out_ += '(';
    write_storage(tensor);
    write_int(tensor.offset());
    write_dims(tensor.sizes());
    write_dims(tensor.strides());
    out_ += hooks_.requires_grad && hooks_.requires_grad(given) ? '\x88' : '\x89';
    write_global("collections", "OrderedDict");
    out_ += ")RtR";
    remember(given.impl());
  }

  // torch.jit.load supports COO and CSR.
  void write_sparse(const ops::SparseTensor& sparse) {
    if (write_known(&sparse)) return;
    if (!sparse.is_coo() && sparse.sparse_layout() != ops::SparseLayout::kCsr)
      fail(ErrorCode::kUnimplemented, "an attribute ", sparse.describe(),
           " cannot be written: PyTorch's archives hold ", "sparse_coo and sparse_csr tensors only");
    write_global("torch._utils", "_rebuild_sparse_tensor");
    out_ += '(';
    write_int(static_cast<int64_t>(sparse.sparse_layout()));
    write_dims(sparse.sizes());
    out_ += hooks_.requires_grad && hooks_.requires_grad(sparse.values()) ? '\x88' : '\x89';
    if (!sparse.is_coo()) write_tensor(sparse.compressed_indices());
    write_tensor(sparse.indices());
    write_tensor(sparse.values());
    write_global("collections", "OrderedDict");
    out_ += ")RtR";
    remember(&sparse);
  }

  void write_quantized(const ops::QuantizedTensor& tensor) {
    if (write_known(&tensor)) return;
    const ops::Quantizer& quantizer = tensor.quantizer();
    if (tensor.type() != ops::QuantizedType::kQInt8 || quantizer.scheme != ops::QuantizationScheme::kPerChannelAffine) {
      fail(ErrorCode::kUnimplemented, "an attribute ", tensor.describe(),
           " cannot be written; qint8 with a scale for each channel can");
    }
    write_global("torch._utils", "_rebuild_qtensor");
    out_ += '(';
    write_storage(tensor.values(), "QInt8Storage");
    write_int(tensor.values().offset());
    write_dims(tensor.sizes());
    write_dims(tensor.values().strides());
    out_ += '(';
    write_global("torch", "per_channel_affine");
    write_tensor(quantizer.scales);
    write_tensor(quantizer.zero_points);
    write_int(quantizer.axis);
    out_ += "t\x89";
    write_global("collections", "OrderedDict");
    out_ += ")RtR";
    remember(&tensor);
  }

  // A packed linear layer: an object without code, whose state is its weight and bias.
  void write_packed(const Value& value, int depth) {
    const IntrusivePtr<ops::OpaqueObject>& object = value.to_opaque();
    if (write_known(object.get())) return;
    if (object->class_name() != kPackedLinear)
      fail(ErrorCode::kUnimplemented, "an attribute of type ", object->class_name(), " cannot be written");
    write_class(kPackedLinear);
    out_ += ")\x81";
    auto state = make_intrusive<ops::TupleObject>(ops::run(ops::get_op("quantized::linear_unpack"), {&value, 1}));
    write_tuple(*state, depth + 1);
    out_ += 'b';
    states_.emplace_back(state);
    remember(object.get());
  }

  // A storage is written with the dtype of its elements, so a storage viewed with several dtypes is written once for
  // each. `type`: of its class, if that is not the dtype's.
  void write_storage(const Tensor& tensor, const char* type = nullptr) {
    const auto [it, is_new] = written_.emplace(std::tuple(tensor.storage().get(), tensor.dtype(), type != nullptr), 0);
    if (!is_new) return write_get(it->second);
    const std::string key = std::to_string(storages_.size());
    const size_t size_bytes = tensor.storage()->size_bytes();
    storages_.push_back({key, tensor.storage(), 0, size_bytes});
    out_ += '(';
    write_string("storage");
    write_global("torch", type ? type : storage_class_of(tensor.dtype()));
    write_string(key);
    write_string("cpu");
    write_int(static_cast<int64_t>(size_bytes / size_of(tensor.dtype())));
    out_ += "tQ";
    it->second = write_put();
  }

  static const char* list_builder(const ops::Type& element) {
    switch (element.kind()) {
      case TypeKind::kInt: return "build_intlist";
      case TypeKind::kFloat: return "build_doublelist";
      case TypeKind::kBool: return "build_boollist";
      case TypeKind::kTensor: return "build_tensorlist";
      default: return nullptr;
    }
  }

  void write_list(const Value& value, int depth) {
    const ops::ListObject& list = *value.to_list();
    if (write_known(&list)) return;
    const char* builder = list_builder(*list.element);
    write_global("torch.jit._pickle", builder ? builder : "restore_type_tag");
    out_ += builder ? "(](" : "](";
    for (const Value& item : list.items) write(item, depth + 1);
    out_ += 'e';
    finish_typed(value, builder != nullptr);
    remember(&list);
  }

  void write_dict(const Value& value, int depth) {
    const ops::DictObject& dict = *value.to_dict();
    if (write_known(&dict)) return;
    write_global("torch.jit._pickle", "restore_type_tag");
    out_ += "}(";
    for (const auto& [key, item] : dict.items()) {
      write(key, depth + 1);
      write(item, depth + 1);
    }
    out_ += 'u';
    finish_typed(value, false);
    remember(&dict);
  }

  // Ends the call that gives the container its type, either by the name of the function or by an annotation.
  void finish_typed(const Value& value, bool is_named) {
    if (is_named) {
      out_ += 't';
    } else {
      write_string(ops::type_of(value)->str());
      out_ += '\x86';
    }
    out_ += 'R';
  }

  void write_tuple(const ops::TupleObject& tuple, int depth) {
    if (write_known(&tuple)) return;
    out_ += '(';
    for (const Value& item : tuple.items) write(item, depth + 1);
    out_ += 't';
    remember(&tuple);
  }

  void write_object(const ops::ObjectPtr& object, int depth) {
    if (write_known(object.get())) return;
    write_class(object->type->name());
    out_ += ")\x81";
    if (std::optional<Value> state = hooks_.get_state ? hooks_.get_state(object) : std::nullopt) {
      write(*state, depth + 1);
      // The memo identifies values by address, so the value must live as long as the pickler.
      states_.push_back(std::move(*state));
    } else {
      write_attributes(*object, depth);
    }
    out_ += 'b';
    remember(object.get());
  }

  void write_attributes(const ops::Object& object, int depth) {
    const auto& attributes = object.type->attributes();
    out_ += "}(";
    for (size_t i = 0; i < attributes.size(); ++i) {
      write_string(attributes[i].name);
      try {
        write(object.slots.at(i), depth + 1);
      } catch (const Error& error) {
        if (depth > 0) throw;
        throw Error(error.code(), concat(error.what(), " (below attribute '", attributes[i].name, "')"));
      }
    }
    out_ += 'u';
  }

  const ModelWriterHooks& hooks_;
  std::vector<PickledStorage> storages_;
  std::map<std::tuple<const StorageImpl*, DType, bool>, uint32_t> written_;
  std::vector<Value> states_;
};

std::string_view bytes_of(const StorageImpl& storage) {
  return {static_cast<const char*>(storage.data()), storage.size_bytes()};
}

// Writes the object, then calls `add_others` with the root folder for the other entries.
template <class Fn>
void write_archive(const std::string& path, const ops::ObjectPtr& object, const ModelWriterHooks& hooks,
                   Fn add_others) {
  ModulePickler pickler(hooks);
  const std::string text = pickler.run(object);
  const std::string stem = std::filesystem::path(path).stem().string();
  const std::string root = (stem.empty() ? "archive" : stem) + "/";
  ZipWriter writer(path);
  for (const PickledStorage& entry : pickler.storages()) {
    writer.add(root + "data/" + entry.key, bytes_of(*entry.storage));
  }
  writer.add(root + "data.pkl", text);
  add_others(writer, root);
  writer.finish();
}

}  // namespace

void write_model_archive(const std::string& path, const ZipArchive& source, const ops::ObjectPtr& object,
                         const ModelWriterHooks& hooks) {
  write_archive(path, object, hooks, [&](ZipWriter& writer, const std::string& root) {
    for (const ZipArchive::Entry& entry : source.entries()) {
      if (entry.name == "data.pkl" || entry.name.starts_with("data/")) continue;
      // Large entries are constants. They are stored uncompressed, so they are written directly from the mapping.
      writer.add(root + entry.name, bytes_of(*source.storage(entry)));
    }
  });
}

void write_model_archive(const std::string& path, const std::vector<std::pair<std::string, std::string>>& entries,
                         const ops::ObjectPtr& object, const ModelWriterHooks& hooks) {
  write_archive(path, object, hooks, [&](ZipWriter& writer, const std::string& root) {
    for (const auto& [name, bytes] : entries) writer.add(root + name, bytes);
  });
}

}  // namespace tensord::jit
