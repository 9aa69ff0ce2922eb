#include "core/ops/attributes/saved_for.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace tensord::ops {
namespace {

struct SavedByArgument {
  std::vector<SavedFor> of;
};

std::string_view next_part(std::string_view& rest, char separator) {
  const size_t end = std::min(rest.find(separator), rest.size());
  std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  part.remove_prefix(std::min(part.find_first_not_of(' '), part.size()));
  return part;
}

// Bits for "self, weight, result1". Returns false if the operator does not have one of the names.
bool parse_saved(const Schema& schema, std::string_view names, SavedFor& out) {
  while (!names.empty()) {
    const std::string_view name = next_part(names, ',');
    if (name.empty()) continue;
    const int argument = schema.find_argument(name);
    if (argument >= 0) {
      out.inputs |= uint64_t{1} << argument;
    } else if (name.starts_with("result") && name.size() <= 7) {
      out.outputs |= uint64_t{1} << (name.size() == 7 ? name[6] - '0' : 0);
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

std::span<const SavedFor> saved_for(const Op& op) {
  const auto* saved = op.attributes.get<SavedByArgument>();
  if (!saved) return {};
  return saved->of;
}

bool set_saved(Op& op, std::string_view names) {
  std::string_view rest = names;
  SavedFor all;
  bool is_right = true;
  if (rest.find(':') == std::string_view::npos) {
    is_right = parse_saved(op.schema, rest, all);
  } else {
    std::vector<SavedFor> by_argument(op.schema.arguments.size());
    while (!rest.empty()) {
      std::string_view part = next_part(rest, ';');
      const int argument = op.schema.find_argument(next_part(part, ':'));
      is_right &= argument >= 0;
      if (argument < 0) continue;
      SavedFor& saved = by_argument[static_cast<size_t>(argument)];
      is_right &= parse_saved(op.schema, part, saved);
      all.inputs |= saved.inputs;
      all.outputs |= saved.outputs;
    }
    is_right &= op.attributes.set(SavedByArgument{std::move(by_argument)});
  }
  op.saved_inputs = all.inputs;
  op.saved_outputs = all.outputs;
  return is_right;
}

}  // namespace tensord::ops
