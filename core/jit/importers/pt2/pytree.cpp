#include "core/jit/importers/pt2/pytree.h"

#include "core/base/error.h"

namespace tensord::jit::pt2 {
namespace {

constexpr int64_t kKnownProtocol = 1;
constexpr size_t kMaxTreeDepth = 30;

// Keys of a dict or fields of a dataclass: a list with one string or number per child, alone or as an element of the
// container's context ([fields, fields that are None]).
std::vector<std::string> child_names(const Json& context, size_t count) {
  if (!context.is_array()) return {};
  std::vector<std::string> names;
  for (const Json& item : context) {
    if (item.is_string()) {
      names.push_back(item.get<std::string>());
    } else if (item.is_number_integer()) {
      names.push_back(item.dump());
    }
  }
  if (names.size() == count && context.size() == count) return names;
  for (const Json& item : context) {
    if (!item.is_array() || item.size() != count) continue;
    names = child_names(item, count);
    if (!names.empty()) return names;
  }
  return {};
}

Pytree read(const Json& spec, const NamedTuples& named_tuples, const std::string& where, size_t depth) {
  if (depth > kMaxTreeDepth) fail(ErrorCode::kResourceExhausted, where, ": nested more than ", kMaxTreeDepth, " deep");
  Pytree tree;
  const Json& children = array_member(spec, "children_spec", where);
  const Json* type = find_member(spec, "type");
  tree.is_leaf = type == nullptr;
  if (tree.is_leaf) {
    if (!children.empty()) fail(ErrorCode::kDataLoss, where, ": a leaf has children");
    return tree;
  }
  for (const Json& child : children) tree.children.push_back(read(child, named_tuples, where, depth + 1));
  const Json* context = find_member(spec, "context");
  if (!context || tree.children.empty()) return tree;
  // The context is a string, which is JSON unless the container's class chose another encoding; in that case there are
  // no names.
  Json inner = *context;
  if (context->is_string()) {
    try {
      inner = parse_json(context->get<std::string>(), where);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kDataLoss) throw;
    }
  }
  if (inner.is_string()) {
    const auto fields = named_tuples.find(inner.get<std::string>());
    if (fields != named_tuples.end() && fields->second.size() == tree.children.size()) tree.names = fields->second;
  } else {
    tree.names = child_names(inner, tree.children.size());
  }
  return tree;
}

void add_names(const Pytree& tree, const std::string& name, std::vector<std::string>& names) {
  if (tree.is_leaf) {
    names.push_back(name);
    return;
  }
  for (size_t i = 0; i < tree.children.size(); ++i) {
    const std::string part = tree.names.empty() ? (name.empty() ? "" : std::to_string(i)) : tree.names[i];
    add_names(tree.children[i], name.empty() ? part : concat(name, ".", part), names);
  }
}

}  // namespace

size_t Pytree::leaf_count() const {
  if (is_leaf) return 1;
  size_t count = 0;
  for (const Pytree& child : children) count += child.leaf_count();
  return count;
}

Pytree parse_pytree(const std::string& text, const NamedTuples& named_tuples, const std::string& where) {
  const Json root = parse_json(text, where);
  if (!root.is_array() || root.size() != 2) fail(ErrorCode::kDataLoss, where, ": no TreeSpec");
  const int64_t protocol = to_int(root[0], where);
  if (protocol != kKnownProtocol) {
    fail(ErrorCode::kUnimplemented, where, ": protocol ", protocol, " of TreeSpec is not known");
  }
  return read(root[1], named_tuples, where, 0);
}

std::vector<std::string> leaf_names(const Pytree& tree, const std::string& prefix) {
  std::vector<std::string> names;
  add_names(tree, prefix, names);
  return names;
}

}  // namespace tensord::jit::pt2
