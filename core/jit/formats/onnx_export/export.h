#pragma once

#include <string>
#include <vector>

#include "core/jit/ir/graph.h"
#include "core/ops/value.h"

namespace tensord::jit::onnx {

// An argument of the method that is written: its name, and two examples of it. Where they have different sizes, those
// stay open in the file. Without examples it is no input, but always this value.
struct ExportArgument {
  std::string name;
  Tensor first, second;
  ops::Value fixed;
};

// Writes what a method's graph computes as an ONNX model. `graph` has its calls inlined and was not prepared for
// kernels; its first input is `self`. The outputs are called `output_names`, in the order in which the result is taken
// apart, or output_0 …, fields and keys by their names. Throws Error{kUnimplemented} that names the operator and its
// place where ONNX cannot say it.
void export_model(const std::string& path, const Graph& graph, const ops::ObjectPtr& self,
                  const std::vector<ExportArgument>& given, const std::vector<std::string>& output_names);

}  // namespace tensord::jit::onnx
