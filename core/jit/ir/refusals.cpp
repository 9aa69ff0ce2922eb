#include "core/jit/ir/refusals.h"

#include <algorithm>

#include "core/base/error.h"

namespace tensord::jit {
namespace {

thread_local RefusalCollector* collector = nullptr;

}  // namespace

RefusalCollector::RefusalCollector() {
  check_internal(collector == nullptr, "refusals are collected twice");
  collector = this;
}

RefusalCollector::~RefusalCollector() { collector = nullptr; }

bool collect_refusal(const std::string& message) {
  if (!collector) return false;
  std::vector<std::string>& all = collector->refusals_;
  if (std::ranges::find(all, message) == all.end()) all.push_back(message);
  return true;
}

void check_none_refused() {
  if (collector && !collector->refusals().empty()) fail(ErrorCode::kUnimplemented, collector->refusals().front());
}

}  // namespace tensord::jit
