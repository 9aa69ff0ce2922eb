#include "core/jit/importers/onnx/operator_library.h"

#include <charconv>

#include "core/base/error.h"

namespace tensord::jit::onnx {
namespace {

struct Domain {
  const char* name;
  const char* prefix;  // of the function names
  int64_t newest_opset;
};
constexpr Domain kDomains[] = {
    {"", "", 28},
    {"ai.onnx.ml", "ml_", 5},
    {"ai.onnx.preview", "preview_", 1},
    {"ai.onnx.preview.training", "training_", 1},
    {"com.microsoft", "microsoft_", 1},
};

const Domain* find_domain(const std::string& name) {
  for (const Domain& domain : kDomains) {
    if (name == domain.name) return &domain;
  }
  return nullptr;
}

}  // namespace

OperatorLibrary::OperatorLibrary() : unit_(std::make_unique<CompilationUnit>(operator_sources())) {
  for (const std::string& name : unit_->function_names()) {
    const std::string last = name.substr(name.rfind('.') + 1);
    const size_t cut = last.rfind('_');
    int64_t version = 0;
    const char* const end = last.data() + last.size();
    if (cut == 0 || cut == std::string::npos) continue;
    if (std::from_chars(last.data() + cut + 1, end, version).ptr != end) continue;
    versions_[last.substr(0, cut)][version] = name;
  }
}

const OperatorLibrary& OperatorLibrary::instance() {
  static const OperatorLibrary library;
  return library;
}

const Function* OperatorLibrary::find(const std::string& domain, const std::string& op_type, int64_t opset) const {
  const Domain* known = find_domain(domain);
  const auto found = known ? versions_.find(known->prefix + op_type) : versions_.end();
  if (found == versions_.end()) return nullptr;
  const auto after = found->second.upper_bound(opset);
  return after == found->second.begin() ? nullptr : unit_->find_function(std::prev(after)->second);
}

bool OperatorLibrary::knows(const std::string& domain, const std::string& op_type) const {
  const Domain* known = find_domain(domain);
  return known && versions_.contains(known->prefix + op_type);
}

const Function& OperatorLibrary::helper(const std::string& name) const {
  const Function* function = unit_->find_function("__torch__.onnx." + name);
  check_internal(function != nullptr, "onnx: there is no function ", name);
  return *function;
}

int64_t OperatorLibrary::newest_opset(const std::string& domain) {
  const Domain* known = find_domain(domain);
  return known ? known->newest_opset : 0;
}

}  // namespace tensord::jit::onnx
