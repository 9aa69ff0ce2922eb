#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/jit/ir/graph.h"

namespace tensord::jit {

// The text form of graphs, for dumps and tests:
//
//     graph(%self : __torch__.M, %x : Tensor):
//         %one : int = prim::Constant[value=1]()
//         %1 : Tensor = aten::add.Tensor(%x, %x, %one)  # code/m.py:12
//         %2 : Tensor = prim::If(%flag)
//             block0():
//                 -> (%x)
//             block1():
//                 -> (%1)
//         return (%2)
//
// Values have the names of the script, made unique by ".1", ".2"; values without a name are numbered in the order of
// the text. Constants are exact: 1, 1.5, inf, "text", True, None, device("cpu"), [1, 2], (1, 2), {"a": 1}. A constant
// without a text form is a reference to a table with a description for the reader: <Tensor float32[64, 3] @0>.
std::string print_graph(const Graph& graph);
// Also appends the constants of the references <… @N> to `constants`.
std::string print_graph(const Graph& graph, std::vector<ops::Value>* constants);
// One node on one line without its blocks, for messages.
std::string print_node(const Node& node);

// Parses the text form; printing the result gives the same text. Operators must be registered. Class names that
// `resolver` does not know become types without attributes. Throws Error{kInvalidArgument} with the line. Does not
// verify the graph.
std::unique_ptr<Graph> parse_graph(std::string_view text, std::span<const ops::Value> constants = {},
                                   const ops::TypeResolver& resolver = {});

// The graph in the format of Graphviz.
std::string print_dot(const Graph& graph);

// The exact text of a constant, as in prim::Constant.
std::string print_constant(const ops::Value& value);

}  // namespace tensord::jit
