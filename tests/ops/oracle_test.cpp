// Records what the registry answers today, so that a change of the dispatcher can be held against it: the bits of each
// operator case's results and gradients, each refusal, and which operators have code for which kind of tensor. See
// tests/ops/README.md for how it is run; nothing else uses it.

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/ops/complex.h"
#include "core/ops/generator.h"
#include "tests/ops/op_cases.h"

namespace tensord::oracle_test {
namespace {

using namespace op_cases;

// FNV-1a.
class Hash {
 public:
  void add(const void* data, size_t size) {
    for (size_t i = 0; i < size; ++i) state_ = (state_ ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001B3u;
  }
  void add(const std::string& string) { add(string.data(), string.size()); }
  void add(int64_t number) { add(&number, sizeof(number)); }
  uint64_t state() const { return state_; }

 private:
  uint64_t state_ = 0xCBF29CE484222325u;
};

void add_tensor(Hash& hash, const Tensor& tensor, bool with_elements) {
  hash.add(describe(tensor));
  if (tensor.is_meta() || !with_elements) return;
  for (const int64_t stride : tensor.strides()) hash.add(tensor.numel() > 1 ? stride : 0);
  const Tensor dense = tensor.contiguous();
  hash.add(dense.raw_data(), dense.size_bytes());
}

void add_value(Hash& hash, const Value& value, bool with_elements) {
  hash.add(value.tag_name());
  if (value.is_tensor()) return add_tensor(hash, value.to_tensor(), with_elements);
  if (value.is_list() || value.is_tuple()) {
    for (const Value& item : items(value)) add_value(hash, item, with_elements);
  } else if (value.is_dict()) {
    for (const auto& [key, item] : value.to_dict()->items()) {
      add_value(hash, key, with_elements);
      add_value(hash, item, with_elements);
    }
  } else if (value.is_string()) {
    hash.add(value.to_string());
  } else if (value.is_float()) {
    const double number = value.to_float();
    hash.add(&number, sizeof(number));
  } else if (value.is_int() || value.is_bool()) {
    hash.add(value.is_int() ? value.to_int() : static_cast<int64_t>(value.to_bool()));
  }
}

void collect_floating(const Value& value, std::vector<Tensor>& out) {
  if (value.is_tensor()) {
    if (is_floating(value.to_tensor().dtype()) || is_complex(value.to_tensor().dtype()))
      out.push_back(value.to_tensor());
  } else if (value.is_list() || value.is_tuple()) {
    for (const Value& item : items(value)) collect_floating(item, out);
  }
}

std::vector<Tensor> floating_tensors(const std::vector<Value>& values) {
  std::vector<Tensor> out;
  for (const Value& value : values) collect_floating(value, out);
  return out;
}

void seed_all() {
  ops::Generator& generator = ops::default_generator();
  const auto lock = generator.lock();
  generator.set_seed(4711);
}

// The answer of one call, or its refusal.
template <class Fn>
std::string answer(Fn&& fn) {
  seed_all();
  const GradModeGuard restores_mode(execution_context().grad_mode);
  try {
    Hash hash;
    fn(hash);
    return std::to_string(hash.state());
  } catch (const Error& error) {
    return concat("refused ", static_cast<int>(error.code()), " ", error.what());
  }
}

// Gradients of the sum of all floating results, by all floating arguments.
void add_gradients(Hash& hash, const ops::Op& op, const std::vector<Value>& arguments) {
  std::vector<Value> bound = ops::bind(op, copy_all(arguments));
  std::vector<Tensor> leaves = floating_tensors(bound);
  for (const Tensor& leaf : leaves) autograd::set_requires_grad(leaf);
  std::vector<Tensor> roots, weights;
  for (const Tensor& result : floating_tensors(ops::run(op, bound))) {
    if (!autograd::requires_grad(result)) continue;
    roots.push_back(result);
    weights.push_back(ops::call_by_name("aten::ones_like", result));
  }
  if (roots.empty()) return;
  for (const Tensor& gradient : autograd::grad(roots, leaves, weights, {}, /*allow_unused=*/true)) {
    gradient ? add_tensor(hash, gradient, true) : hash.add(std::string("none"));
  }
}

void add_answers(std::map<std::string, std::string>& lines, const Value& record, const std::string& key) {
  const ops::Op* op = ops::find_op(field(record, "op").to_string());
  if (!op || op->schema.name == "prim::TimePoint" || op->schema.name == "aten::seed") return;  // never the same
  const std::vector<Value>& arguments = items(field(record, "args"));
  const bool with_elements = field(record, "check").to_string() != "shape" || op->is_random;
  lines[key + " values"] = answer([&](Hash& hash) {
    std::vector<Value> bound = ops::bind(*op, copy_all(arguments));
    for (const Value& value : ops::run(*op, bound)) add_value(hash, value, with_elements);
    for (const Value& value : bound) add_value(hash, value, with_elements);
  });
  if (!with_elements) return;
  lines[key + " gradients"] = answer([&](Hash& hash) { add_gradients(hash, *op, arguments); });
}

void add_matrix(std::map<std::string, std::string>& lines) {
  for (const ops::Op* op : ops::all_ops()) {
    std::string line;
    const auto has = [&](Functionality layout) { return op->table[ops::cell_of(layout, kCPU)] != nullptr; };
    for (const DeviceKind device : {DeviceKind::kCPU, DeviceKind::kCUDA}) {
      const ops::Op& own = op->base ? *op->base : *op;
      line += concat(" ", name_of(device), "=", own.kernel(device) != nullptr);
    }
    line += concat(" complex=", has(Functionality::kComplex));
    line += concat(" quantized=", has(Functionality::kQuantized));
    line += concat(" sparse=", has(Functionality::kSparse));
    lines["kinds of " + op->schema.full_name()] = line;
  }
}

std::map<std::string, std::string> answers_of_today() {
  std::map<std::string, std::string> lines;
  for (const auto& file : case_files()) {
    const Value records = jit::load_torch_file(file.string());
    int64_t number = 0;
    for (const Value& record : items(records)) {
      add_answers(lines, record,
                  concat(file.stem().string(), " ", number++, " ", field(record, "op").to_string(), " ",
                         field(record, "label").to_string()));
    }
  }
  add_matrix(lines);
  return lines;
}

std::string without_line_breaks(std::string string) {
  for (char& c : string) c = c == '\n' || c == '\t' ? ' ' : c;
  return string;
}

// Writes the file that TENSORD_ORACLE names where there is none, and compares with it where there is one.
TEST(Oracle, AnswersAreThoseRecorded) {
  const char* path = std::getenv("TENSORD_ORACLE");
  if (!path || case_files().empty()) GTEST_SKIP() << "see tests/ops/README.md";
  const std::map<std::string, std::string> lines = answers_of_today();
  std::ifstream recorded(path);
  if (!recorded) {
    std::ofstream out(path);
    for (const auto& [key, line] : lines) out << without_line_breaks(key) << '\t' << without_line_breaks(line) << '\n';
    return;
  }
  std::map<std::string, std::string> expected;
  for (std::string line; std::getline(recorded, line);) {
    const size_t tab = line.find('\t');
    expected[line.substr(0, tab)] = line.substr(tab + 1);
  }
  for (const auto& [key, line] : lines) {
    const auto it = expected.find(without_line_breaks(key));
    if (it == expected.end()) {
      ADD_FAILURE() << "new: " << key << ": " << line;
    } else {
      EXPECT_EQ(it->second, without_line_breaks(line)) << key;
      expected.erase(it);
    }
  }
  for (const auto& [key, line] : expected) ADD_FAILURE() << "gone: " << key << ": " << line;
}

}  // namespace
}  // namespace tensord::oracle_test
