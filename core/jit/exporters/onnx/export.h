#pragma once

#include <string>
#include <vector>

#include "core/jit/ir/graph.h"
#include "core/jit/tracing/export_argument.h"

namespace tensord::jit::onnx {

// Writes a method's graph as an ONNX model. `graph` has its calls inlined and was not prepared for kernels; its first
// input is `self`. Outputs have the names `output_names`, in the order in which the result is flattened, or output_0 …,
// and fields and keys have their own names. Throws Error{kUnimplemented} that names an operator without an ONNX
// equivalent and its source location.
void export_model(const std::string& path, const Graph& graph, const ops::ObjectPtr& self,
                  const std::vector<tracing::ExportArgument>& given, const std::vector<std::string>& output_names);

}  // namespace tensord::jit::onnx
