#include "core/ops/attributes/autocast.h"

#include <utility>

#include "core/base/error.h"

namespace tensord::ops {
namespace {

AutocastPolicy autocast_policy_of(std::string_view word) {
  if (word == "lower") return AutocastPolicy::kLower;
  if (word == "f32") return AutocastPolicy::kFloat32;
  if (word == "promote") return AutocastPolicy::kPromote;
  if (word == "refused") return AutocastPolicy::kRefused;
  fail(ErrorCode::kInvalidArgument, "autocast: expected lower, f32, promote or refused, got '", word, "'");
}

}  // namespace

void Autocast::add(std::string_view mark) {
  const bool is_of_cpu = mark.starts_with("cpu "), is_of_cuda = mark.starts_with("cuda ");
  const AutocastPolicy policy = autocast_policy_of(is_of_cpu || is_of_cuda ? mark.substr(mark.find(' ') + 1) : mark);
  for (auto [own, is_meant] : {std::pair{&cpu, !is_of_cuda}, std::pair{&cuda, !is_of_cpu}}) {
    if (!is_meant) continue;
    check(*own == AutocastPolicy::kNone, "autocast: two policies for one device");
    *own = policy;
  }
}

}  // namespace tensord::ops
