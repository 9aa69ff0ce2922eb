#include "core/jit/exporters/onnx/export.h"

#include <filesystem>

#include "core/base/error.h"
#include "core/jit/exporters/onnx/call.h"

namespace tensord::jit::onnx {
namespace {

class OnnxFile : public tracing::Target {
 public:
  explicit OnnxFile(ModelWriter& writer) : writer_(writer) {}

  std::string_view format() const override { return "ONNX"; }
  bool shares_memory() const override { return false; }
  std::string add_constant(std::string_view hint, const Tensor& tensor) override {
    return writer_.add_initializer(hint, tensor);
  }
  std::string add_weight(const std::string& path, const Tensor& tensor, bool) override {
    return writer_.add_initializer(path, tensor);
  }
  void write_weight(const std::string&, const std::string&) override {
    check_internal(false, "ONNX: a tensor of the model is written");
  }
  bool can_write(const ops::Op& op) const override {
    return find_handler(op.base ? op.base->schema.name : op.schema.name) != nullptr;
  }
  void begin_branch() override { writer_.begin_branch(); }
  void end_branch(const Tracer& /*tracer*/, const std::vector<Traced>& results, const Strings& names) override {
    std::vector<WrittenTensor> outputs;
    for (size_t i = 0; i < results.size(); ++i) {
      const Tensor& tensor = results[i].a.to_tensor();
      outputs.push_back({names[i], tensor.dtype(), Dims(static_cast<size_t>(tensor.ndim()), -1), {}});
    }
    writer_.end_branch(outputs);
  }
  Strings add_choice(const Tracer& /*tracer*/, const std::string& condition, const std::vector<Traced>&) override {
    return writer_.add_if(condition, "branch");
  }
  void write(tracing::Call& call) override {
    const ops::Op& op = call.op();
    std::vector<Traced>& results = call.results();
    Call own(std::move(call), writer_);
    find_handler(op.base ? op.base->schema.name : op.schema.name)(own);
    results = std::move(own.results());
  }

 private:
  ModelWriter& writer_;
};

// Flattens a result into tensors, with the names of dict keys and NamedTuple fields.
void take_apart(const Traced& value, const std::string& name, std::vector<std::pair<std::string, Traced>>& leaves) {
  if (value.a.is_strided()) {
    leaves.emplace_back(name, value);
    return;
  }
  if (!value.items) {
    if (value.a.is_none() && !value.is_dynamic) return;
    fail(ErrorCode::kUnimplemented, "the result holds a ", value.a.tag_name(), ", which is not a tensor");
  }
  const auto below = [&](const std::string& part) { return name.empty() ? part : name + "." + part; };
  if (value.a.is_dict()) {
    for (size_t i = 0; i < value.items->size(); i += 2) {
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
                  const std::vector<tracing::ExportArgument>& given, const std::vector<std::string>& output_names) {
  const bool has_open_sizes = tracing::has_open_sizes(given);
  ModelWriter writer;
  OnnxFile file(writer);
  Tracer tracer(file, self, has_open_sizes, tracing::count_probes(given));
  std::vector<Traced> arguments{tracing::wrap(self)};
  for (const tracing::ExportArgument& input : given) {
    if (!input.first.defined()) {
      arguments.push_back(tracing::wrap(input.fixed));
      continue;
    }
    Strings size_names;
    for (int64_t i = 0; i < input.first.ndim(); ++i) size_names.push_back(concat(input.name, "_", i));
    // A copy, because the program may write to its inputs.
    const Dims sizes = tracing::common_sizes(input.first, input.second);
    const std::string name = writer.new_name(input.name);
    writer.add_input({name, input.first.dtype(), sizes, size_names});
    arguments.push_back(tracer.add_input(name, input.first.clone(), input.second.clone(), tracing::probes_of(input)));
  }
  const Traced result = tracer.run(*graph.block(), std::move(arguments));
  std::vector<std::pair<std::string, Traced>> leaves;
  take_apart(result, "", leaves);
  if (leaves.empty()) fail(ErrorCode::kUnimplemented, "the result holds no tensor");
  for (size_t i = 0; i < leaves.size(); ++i) {
    const auto& [own, value] = leaves[i];
    const bool has_names = output_names.size() == leaves.size() && !output_names[i].empty();
    const std::string hint = has_names ? output_names[i] : !own.empty() ? own : concat("output_", i);
    const Tensor& a = value.a.to_tensor();
    Dims sizes = a.sizes();
    for (int64_t dim = 0; dim < a.ndim(); ++dim) {
      if (tracer.is_open_size(value, dim)) sizes[static_cast<size_t>(dim)] = -1;
    }
    // A value may be an input, a weight or several results; an Identity node gives each output its own name.
    const std::string name = writer.add_node("Identity", {tracer.name_of(value)}, {}, 1, hint).front();
    writer.add_output({name, a.dtype(), sizes, {}});
  }
  writer.write(path, std::filesystem::path(path).stem().string());
}

}  // namespace tensord::jit::onnx
