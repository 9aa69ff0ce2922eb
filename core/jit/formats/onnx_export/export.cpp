#include "core/jit/formats/onnx_export/export.h"

#include <filesystem>

#include "core/base/error.h"
#include "core/jit/formats/onnx_export/tracer.h"

namespace tensord::jit::onnx {
namespace {

// Tensors of a result, with the names that dicts and NamedTuples give them.
void take_apart(const Traced& value, const std::string& name, std::vector<std::pair<std::string, Traced>>& leaves) {
  if (value.a.is_tensor()) {
    leaves.emplace_back(name, value);
    return;
  }
  if (!value.items) {
    if (value.a.is_none() && !value.is_dynamic) return;
    fail(ErrorCode::kUnimplemented, "the result holds a ", value.a.tag_name(), ", which is no tensor");
  }
  const auto below = [&](const std::string& part) { return name.empty() ? part : name + "." + part; };
  if (value.a.is_dict()) {
    for (size_t i = 0; i + 1 < value.items->size(); i += 2) {
      const ops::Value& key = (*value.items)[i].a;
      take_apart((*value.items)[i + 1], below(key.is_string() ? key.to_string() : std::to_string(i / 2)), leaves);
    }
    return;
  }
  const ops::TypePtr type = value.a.is_tuple() ? value.a.to_tuple()->type : nullptr;
  for (size_t i = 0; i < value.items->size(); ++i) {
    const std::string part = type && i < type->field_names().size() ? below(type->field_names()[i]) : std::string();
    take_apart((*value.items)[i], part, leaves);
  }
}

}  // namespace

void export_model(const std::string& path, const Graph& graph, const ops::ObjectPtr& self,
                  const std::vector<ExportArgument>& given, const std::vector<std::string>& output_names) {
  bool has_open_sizes = false;
  for (const ExportArgument& one : given) {
    if (one.first.defined()) has_open_sizes = has_open_sizes || one.first.sizes() != one.second.sizes();
  }
  ModelWriter writer;
  Tracer tracer(writer, self, has_open_sizes);
  std::vector<Traced> arguments{Tracer::wrap(self, self)};
  for (const ExportArgument& input : given) {
    if (!input.first.defined()) {
      arguments.push_back(Tracer::wrap(input.fixed, input.fixed));
      continue;
    }
    Strings size_names;
    for (int64_t i = 0; i < input.first.ndim(); ++i) size_names.push_back(concat(input.name, "_", i));
    // What the program writes in place is not the caller's.
    arguments.push_back(tracer.add_input(input.name, input.first.clone(), input.second.clone(), size_names));
  }
  const Traced result = tracer.run(*graph.block(), std::move(arguments));
  std::vector<std::pair<std::string, Traced>> leaves;
  take_apart(result, "", leaves);
  if (leaves.empty()) fail(ErrorCode::kUnimplemented, "the result holds no tensor");
  for (size_t i = 0; i < leaves.size(); ++i) {
    const auto& [own, value] = leaves[i];
    const bool has_names = output_names.size() == leaves.size() && !output_names[i].empty();
    const std::string wish = has_names ? output_names[i] : !own.empty() ? own : concat("output_", i);
    const Tensor &a = value.a.to_tensor(), &b = has_open_sizes ? value.b.to_tensor() : a;
    Dims sizes = a.sizes();
    for (size_t k = 0; k < sizes.size(); ++k) {
      if (sizes[k] != b.sizes()[k]) sizes[k] = -1;
    }
    // A value may be an input, a weight or two results at once; a node of its own gives it its name.
    const std::string name = writer.add_node("Identity", {tracer.name_of(value)}, {}, 1, wish).front();
    writer.add_output({name, a.dtype(), sizes, {}});
  }
  writer.write(path, std::filesystem::path(path).stem().string());
}

}  // namespace tensord::jit::onnx
