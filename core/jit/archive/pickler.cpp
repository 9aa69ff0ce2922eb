#include <map>

#include "core/autograd/variable.h"
#include "core/base/error.h"
#include "core/jit/archive/pickle.h"
#include "core/jit/archive/pickle_writer.h"
#include "core/jit/archive/storage_types.h"
#include "core/ops/sparse.h"

namespace tensord::jit {
namespace {

using ops::Value;

constexpr int kMaxPickleDepth = 1000;

class Pickler : PickleWriter {
 public:
  explicit Pickler(std::vector<PickledStorage>* storages) : storages_(*storages) {}

  std::string run(const Value& value) {
    write(value, 0);
    out_ += '.';
    return std::move(out_);
  }

 private:
  void write(const Value& value, int depth) {
    if (depth > kMaxPickleDepth)
      fail(ErrorCode::kResourceExhausted, "pickle: values are nested more than ", kMaxPickleDepth, " deep");
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
        return write_tensor(value.to_tensor());
      case Value::Tag::kList: write_list(*value.to_list(), depth); return;
      case Value::Tag::kTuple: write_tuple(*value.to_tuple(), depth); return;
      case Value::Tag::kDict: write_dict(*value.to_dict(), depth); return;
      default:
        fail(ErrorCode::kUnimplemented, "pickle: a value of type ", ops::type_of(value)->str(), " cannot be written");
    }
  }

  void write_tensor(const Tensor& tensor) {
    if (write_known(tensor.impl())) return;
    if (tensor.is_meta() || tensor.device().kind != kCPU) {
      fail(ErrorCode::kFailedPrecondition, "pickle: a tensor on ", to_string(tensor.device()),
           " must be moved to the CPU first");
    }
    const bool is_dense = is_non_overlapping_and_dense(tensor.sizes(), tensor.strides());
    const Tensor dense = is_dense ? tensor : tensor.contiguous();
    write_global("torch._utils", "_rebuild_tensor_v2");
    out_ += "((";
    write_string("storage");
    write_global("torch", storage_class_of(dense.dtype()));
    write_string(storage_key(dense));
    write_string("cpu");
    write_int(dense.numel());
    out_ += "tQ";
    write_int(0);
    write_dims(dense.sizes());
    write_dims(dense.strides());
    out_ += autograd::requires_grad(tensor) ? '\x88' : '\x89';
    write_global("collections", "OrderedDict");
    out_ += ")RtR";
    remember(tensor.impl());
  }

  // Writes the form that all versions of PyTorch read. Only newer versions support layouts other than COO.
  void write_sparse(const ops::SparseTensor& sparse) {
    if (write_known(&sparse)) return;
    write_global("torch._utils", "_rebuild_sparse_tensor");
    out_ += '(';
    write_global("torch.serialization", "_get_layout");
    write_string(concat("torch.", ops::name_of(sparse.sparse_layout())));
    out_ += "\x85R(";
    if (!sparse.is_coo()) write_tensor(sparse.compressed_indices());
    write_tensor(sparse.indices());
    write_tensor(sparse.values());
    write_global("torch", "Size");
    write_dims(sparse.sizes());
    out_ += "\x85RttR";
    remember(&sparse);
  }

  // Tensors over exactly the same bytes share one storage in the file.
  const std::string& storage_key(const Tensor& dense) {
    const auto [it, is_new] = keys_.emplace(std::pair(dense.raw_data(), dense.size_bytes()), storages_.size());
    if (is_new || dense.numel() == 0) {
      it->second = storages_.size();
      const size_t offset = static_cast<size_t>(dense.offset()) * size_of(dense.dtype());
      storages_.push_back({std::to_string(storages_.size()), dense.storage(), offset, dense.size_bytes()});
    }
    return storages_[it->second].key;
  }

  void write_list(const ops::ListObject& list, int depth) {
    if (write_known(&list)) return;
    out_ += ']';
    remember(&list);
    if (list.items.empty()) return;
    out_ += '(';
    for (const Value& item : list.items) write(item, depth + 1);
    out_ += 'e';
  }

  void write_tuple(const ops::TupleObject& tuple, int depth) {
    if (tuple.items.empty()) {
      out_ += ')';
      return;
    }
    if (write_known(&tuple)) return;
    out_ += '(';
    for (const Value& item : tuple.items) write(item, depth + 1);
    out_ += 't';
    remember(&tuple);
  }

  void write_dict(const ops::DictObject& dict, int depth) {
    if (write_known(&dict)) return;
    out_ += '}';
    remember(&dict);
    if (dict.items().empty()) return;
    out_ += '(';
    for (const auto& [key, item] : dict.items()) {
      write(key, depth + 1);
      write(item, depth + 1);
    }
    out_ += 'u';
  }

  std::vector<PickledStorage>& storages_;
  std::map<std::pair<void*, size_t>, size_t> keys_;
};

}  // namespace

std::string pickle(const Value& value, std::vector<PickledStorage>* storages) { return Pickler(storages).run(value); }

}  // namespace tensord::jit
