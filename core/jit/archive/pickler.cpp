#include <bit>
#include <map>
#include <unordered_map>

#include "core/base/error.h"
#include "core/jit/archive/pickle.h"
#include "core/jit/archive/storage_types.h"

namespace tensord::jit {
namespace {

using ops::Value;

constexpr int kMaxDepth = 1000;

// Writes only opcodes that torch.load(weights_only=True) knows.
class Pickler {
 public:
  explicit Pickler(std::vector<PickledStorage>* storages) : storages_(*storages) {}

  std::string run(const Value& value) {
    out_ += "\x80\x02";
    write(value, 0);
    out_ += '.';
    return std::move(out_);
  }

 private:
  void write(const Value& value, int depth) {
    if (depth > kMaxDepth)
      fail(ErrorCode::kResourceExhausted, "pickle: values are nested more than ", kMaxDepth, " deep");
    switch (value.tag()) {
      case Value::Tag::kNone: out_ += 'N'; return;
      case Value::Tag::kBool: out_ += value.to_bool() ? '\x88' : '\x89'; return;
      case Value::Tag::kInt: write_int(value.to_int()); return;
      case Value::Tag::kFloat: write_float(value.to_float()); return;
      case Value::Tag::kString: write_string(value.to_string()); return;
      case Value::Tag::kDevice: write_device(value.to_device()); return;
      case Value::Tag::kTensor: write_tensor(value.to_tensor()); return;
      case Value::Tag::kList: write_list(*value.to_list(), depth); return;
      case Value::Tag::kTuple: write_tuple(*value.to_tuple(), depth); return;
      case Value::Tag::kDict: write_dict(*value.to_dict(), depth); return;
      default:
        fail(ErrorCode::kUnimplemented, "pickle: a value of type ", ops::type_of(value)->str(), " cannot be written");
    }
  }

  void write_number(uint64_t number, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) out_ += static_cast<char>(number >> (8 * i) & 0xff);
  }

  void write_int(int64_t value) {
    if (value >= 0 && value < 256) {
      out_ += 'K';
      write_number(static_cast<uint64_t>(value), 1);
    } else if (value >= 0 && value < 65536) {
      out_ += 'M';
      write_number(static_cast<uint64_t>(value), 2);
    } else if (value == static_cast<int32_t>(value)) {
      out_ += 'J';
      write_number(static_cast<uint64_t>(value), 4);
    } else {
      out_ += "\x8a\x08";
      write_number(static_cast<uint64_t>(value), 8);
    }
  }

  void write_float(double value) {
    out_ += 'G';
    const auto bits = std::bit_cast<uint64_t>(value);
    for (int shift = 56; shift >= 0; shift -= 8) out_ += static_cast<char>(bits >> shift & 0xff);
  }

  void write_string(const std::string& text) {
    if (text.size() > 0x7fffffff)
      fail(ErrorCode::kResourceExhausted, "pickle: a str of ", text.size(), " bytes is too long");
    out_ += 'X';
    write_number(text.size(), 4);
    out_ += text;
  }

  void write_global(const std::string& module, const std::string& name) {
    const auto [it, is_new] = globals_.emplace(module + "\n" + name, memo_count_);
    if (!is_new) return write_get(it->second);
    out_ += 'c' + module + "\n" + name + "\n";
    write_put();
  }

  uint32_t write_put() {
    const uint32_t index = memo_count_++;
    out_ += index < 256 ? 'q' : 'r';
    write_number(index, index < 256 ? 1 : 4);
    return index;
  }

  void write_get(uint32_t index) {
    out_ += index < 256 ? 'h' : 'j';
    write_number(index, index < 256 ? 1 : 4);
  }

  // Whether the object was written before; then it is referred to.
  bool write_known(const void* object) {
    const auto it = memo_.find(object);
    if (it == memo_.end()) return false;
    write_get(it->second);
    return true;
  }

  void write_device(Device device) {
    write_global("torch", "device");
    write_string(to_string(device));
    out_ += "\x85R";
  }

  void write_dims(std::span<const int64_t> dims) {
    if (dims.empty()) {
      out_ += ')';
      return;
    }
    out_ += '(';
    for (const int64_t dim : dims) write_int(dim);
    out_ += 't';
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
    out_ += '\x89';
    write_global("collections", "OrderedDict");
    out_ += ")RtR";
    memo_.emplace(tensor.impl(), write_put());
  }

  // Tensors over the very same bytes share one storage, as they did here.
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
    memo_.emplace(&list, write_put());
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
    memo_.emplace(&tuple, write_put());
  }

  void write_dict(const ops::DictObject& dict, int depth) {
    if (write_known(&dict)) return;
    out_ += '}';
    memo_.emplace(&dict, write_put());
    if (dict.items().empty()) return;
    out_ += '(';
    for (const auto& [key, item] : dict.items()) {
      write(key, depth + 1);
      write(item, depth + 1);
    }
    out_ += 'u';
  }

  std::string out_;
  std::vector<PickledStorage>& storages_;
  std::map<std::pair<void*, size_t>, size_t> keys_;
  std::map<std::string, uint32_t> globals_;
  std::unordered_map<const void*, uint32_t> memo_;
  uint32_t memo_count_ = 0;
};

}  // namespace

std::string pickle(const Value& value, std::vector<PickledStorage>* storages) { return Pickler(storages).run(value); }

}  // namespace tensord::jit
