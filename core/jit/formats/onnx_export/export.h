#pragma once

#include <string>
#include <vector>

#include "core/jit/formats/export_tracing/export_argument.h"
#include "core/jit/ir/graph.h"

namespace tensord::jit::onnx {

// Writes what a method's graph computes as an ONNX model. `graph` has its calls inlined and was not prepared for
// kernels; its first input is `self`. The outputs are called `output_names`, in the order in which the result is taken
// apart, or output_0 …, fields and keys by their names. Throws Error{kUnimplemented} that names the operator and its
// place where ONNX cannot say it.
void export_model(const std::string& path, const Graph& graph, const ops::ObjectPtr& self,
                  const std::vector<tracing::ExportArgument>& given, const std::vector<std::string>& output_names);

}  // namespace tensord::jit::onnx
