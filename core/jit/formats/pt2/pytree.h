#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/jit/formats/pt2/json.h"

namespace tensord::jit::pt2 {

// How Python values lie in a flat list of leaves: what a forward takes, or gives back.
struct Pytree {
  bool is_leaf = false;
  std::vector<Pytree> children;
  std::vector<std::string> names;  // of the children, where the container has some: keys, fields
  size_t leaf_count() const;
};

using NamedTuples = std::map<std::string, std::vector<std::string>>;  // fields by the type's name

// Reads the text of a TreeSpec ("[1, {…}]"). Throws Error that starts with `where`.
Pytree parse_pytree(const std::string& text, const NamedTuples& named_tuples, const std::string& where);

// The name of each leaf: names and numbers joined by '.'. Of leaves that no name leads to, "".
std::vector<std::string> leaf_names(const Pytree& tree, const std::string& prefix);

}  // namespace tensord::jit::pt2
