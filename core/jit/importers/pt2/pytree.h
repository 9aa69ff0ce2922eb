#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/jit/importers/pt2/json.h"

namespace tensord::jit::pt2 {

// How a nested Python value maps to a flat list of leaves: forward's inputs or outputs.
struct Pytree {
  bool is_leaf = false;
  std::vector<Pytree> children;
  std::vector<std::string> names;  // names of the children, if the container has any: keys, fields
  size_t leaf_count() const;
};

using NamedTuples = std::map<std::string, std::vector<std::string>>;  // fields by type name

// Parses a TreeSpec ("[1, {…}]"). Throws Error that starts with `where`.
Pytree parse_pytree(const std::string& text, const NamedTuples& named_tuples, const std::string& where);

// The name of each leaf: names and indices joined by '.'; "" for leaves without a name on their path.
std::vector<std::string> leaf_names(const Pytree& tree, const std::string& prefix);

}  // namespace tensord::jit::pt2
