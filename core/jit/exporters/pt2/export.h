#pragma once

#include <string>
#include <vector>

#include "core/jit/ir/graph.h"
#include "core/jit/tracing/export_argument.h"

namespace tensord::jit::pt2 {

// Writes a method's graph as an exported program for torch.export.load of PyTorch 2.15: its operators unchanged,
// weights by name, so that it can be trained. `graph` has its calls inlined and was not prepared for kernels; its first
// input is `self`. Results keep their tuples, lists and dicts; a NamedTuple becomes a dict of its fields, because the
// file cannot contain its class. Throws Error{kUnimplemented} that names an operator that a program cannot express and
// its source location.
void export_program(const std::string& path, const Graph& graph, const ops::ObjectPtr& self,
                    const std::vector<tracing::ExportArgument>& given);

}  // namespace tensord::jit::pt2
