#pragma once

#include <string>
#include <vector>

#include "core/jit/formats/export_tracing/export_argument.h"
#include "core/jit/ir/graph.h"

namespace tensord::jit::pt2 {

// Writes what a method's graph computes as an exported program, which torch.export.load of PyTorch 2.15 reads: its
// operators as they are, weights by their names, so that it can be trained. `graph` has its calls inlined and was not
// prepared for kernels; its first input is `self`. Results keep their tuples, lists and dicts; a NamedTuple becomes a
// dict of its fields, as its class cannot be in the file. Throws Error{kUnimplemented} that names the operator and its
// place where a program cannot say it.
void export_program(const std::string& path, const Graph& graph, const ops::ObjectPtr& self,
                    const std::vector<tracing::ExportArgument>& given);

}  // namespace tensord::jit::pt2
