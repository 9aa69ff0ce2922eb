#include "core/jit/exporters/pt2/program_writer.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/base/ascii.h"
#include "core/base/error.h"
#include "core/jit/archive/torch_file.h"
#include "core/jit/archive/zip_writer.h"
#include "core/jit/importers/pt2/enums.h"

namespace tensord::jit::pt2 {
namespace {

// The schema version of PyTorch 2.15.
constexpr int64_t kMajor = 8, kMinor = 20;

Json meta_json(DType dtype, Json sizes, Json strides, bool requires_grad) {
  return {{"dtype", schema_number(dtype)},  {"sizes", std::move(sizes)},
          {"requires_grad", requires_grad}, {"device", {{"type", "cpu"}, {"index", nullptr}}},
          {"strides", std::move(strides)},  {"storage_offset", {{"as_int", 0}}},
          {"layout", kStridedLayout}};
}

Json ints_json(const Dims& values) {
  Json out = Json::array();
  for (const int64_t value : values) out.push_back({{"as_int", value}});
  return out;
}

std::string_view bytes_of(const Tensor& contiguous) {
  return {static_cast<const char*>(contiguous.raw_data()),
          static_cast<size_t>(contiguous.numel()) * size_of(contiguous.dtype())};
}

std::vector<OpenSize> strides_of(const tracing::Tracer& tracer, const Traced& tensor) {
  const Tensor &a = tensor.a.to_tensor(), &b = tracer.is_double() ? tensor.b.to_tensor() : a;
  const std::vector<std::optional<Tensor>> probes = tracer.probe_tensors(tensor);
  std::vector<OpenSize> strides;
  for (size_t i = 0; i < static_cast<size_t>(a.ndim()); ++i) {
    strides.push_back({a.strides()[i], b.strides()[i], ""});
    for (const std::optional<Tensor>& one : probes) {
      strides.back().probes.push_back(one ? std::optional(one->strides()[i]) : std::nullopt);
    }
  }
  return strides;
}

// A file of torch.save as bytes of an archive entry.
std::string torch_file_bytes(const std::string& beside, const ops::Value& value) {
  const std::string path = beside + ".examples";
  save_torch_file(path, value);
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  check(!in.bad() && !bytes.empty(), path, ": cannot be read");
  return bytes;
}

}  // namespace

// An unused Python identifier derived from the hint.
std::string ProgramWriter::new_name(std::string_view hint) {
  std::string name;
  for (const char c : hint) name += is_ascii_alnum(c) ? c : '_';
  if (name.empty() || is_ascii_digit(name[0])) name = "v" + name;
  return names_taken_.make(name);
}

std::string ProgramWriter::new_symbol(int64_t min) {
  const std::string symbol = concat("s", symbol_count_++);
  ranges_[symbol] = {{"min_val", min}, {"max_val", nullptr}};
  return symbol;
}

Json ProgramWriter::size_json(const OpenSize& size) const {
  if (!size.is_open) return {{"as_int", size.a}};
  return {{"as_expr", {{"expr_str", size.expression}, {"hint", {{"as_int", size.b}}}}}};
}

// In a dense tensor, each stride is the product of the sizes of the inner dimensions.
Json ProgramWriter::strides_json(std::vector<OpenSize> strides, const std::vector<OpenSize>& sizes) {
  std::vector<size_t> order(sizes.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = order.size() - 1 - i;
  std::ranges::stable_sort(order, {}, [&](size_t i) { return strides[i].a; });
  OpenSize product{1, 1, "Integer(1)"};
  for (const size_t i : order) {
    OpenSize& stride = strides[i];
    const bool is_dense = stride.a == product.a && stride.b == product.b;
    stride.is_open = stride.a != stride.b || (is_dense && product.is_open);
    if (stride.is_open) stride.expression = is_dense ? product.expression : find_expression(stride, sizes);
    if (stride.is_open && stride.expression.empty()) stride.expression = symbol_expression(new_symbol());
    const std::string size = sizes[i].is_open ? sizes[i].expression : concat("Integer(", sizes[i].a, ")");
    product = {product.a * sizes[i].a, product.b * sizes[i].b, concat("Mul(", product.expression, ", ", size, ")"),
               product.is_open || sizes[i].is_open};
  }
  Json out = Json::array();
  for (const OpenSize& stride : strides) out.push_back(size_json(stride));
  return out;
}

void ProgramWriter::describe(const tracing::Tracer& tracer, const std::string& name, const Traced& tensor,
                             const std::vector<OpenSize>& known) {
  const Tensor& first = tensor.a.to_tensor();
  std::vector<OpenSize>& sizes = shapes_[name];
  Json size_list = Json::array();
  for (int64_t i = 0; i < first.ndim(); ++i) {
    OpenSize size = open_size(tracer, tensor, i);
    if (size.is_open) size.expression = find_expression(size, known);
    if (size.is_open && size.expression.empty()) size.expression = symbol_expression(new_symbol());
    size_list.push_back(size_json(size));
    sizes.push_back(std::move(size));
  }
  tensor_values_[name] = meta_json(first.dtype(), size_list, strides_json(strides_of(tracer, tensor), sizes), false);
}

// For a tensor whose shape is constant over all inputs.
void ProgramWriter::describe_fixed(const std::string& name, const Tensor& tensor) {
  std::vector<OpenSize>& sizes = shapes_[name];
  for (const int64_t size : tensor.sizes()) sizes.push_back({size, size, ""});
  tensor_values_[name] = meta_json(tensor.dtype(), ints_json(tensor.sizes()), ints_json(tensor.strides()), false);
}

std::vector<OpenSize> ProgramWriter::known_sizes(Call& call) {
  std::vector<OpenSize> known;
  const auto add = [&](const auto& self, const Traced& value) -> void {
    if (value.items) {
      for (const Traced& item : *value.items) self(self, item);
    } else if (value.a.is_strided()) {
      const auto shape = shapes_.find(call.tracer().name_of(value));
      if (shape == shapes_.end()) return;
      std::ranges::copy_if(shape->second, std::back_inserter(known), [](const OpenSize& one) { return one.is_open; });
    } else if (value.is_dynamic && value.a.is_int() && !value.number.empty()) {
      OpenSize size{value.a.to_int(), value.b.to_int(), expressions_[value.number], true};
      for (size_t i = 0; value.probes && i < value.probes->size(); ++i) {
        const std::optional<ops::Value>& one = (*value.probes)[i];
        size.probes.push_back(one && one->is_int() ? std::optional(one->to_int()) : std::nullopt);
      }
      known.push_back(std::move(size));
    }
  };
  for (const Traced& argument : call.arguments()) add(add, argument);
  return known;
}

std::string ProgramWriter::add_constant(std::string_view, const Tensor& tensor) {
  const std::string path = concat("lifted_tensor_", constants_.size());
  const std::string name = new_name("c_" + path);
  constants_.push_back({name, path, tensor.contiguous()});
  describe_fixed(name, constants_.back().tensor);
  return name;
}

std::string ProgramWriter::add_weight(const std::string& path, const Tensor& tensor, bool is_parameter) {
  std::string hint = concat(is_parameter ? "p_" : "b_", path);
  const std::string name = new_name(hint);
  // Copies what the program may write to while it is traced.
  weights_.push_back({name, path, is_parameter ? tensor.contiguous() : tensor.clone().contiguous(), is_parameter});
  describe_fixed(name, weights_.back().tensor);
  tensor_values_[name]["requires_grad"] = is_parameter;
  return name;
}

void ProgramWriter::write_weight(const std::string& weight, const std::string& value) {
  const std::string name = new_name("copy_");
  shapes_[name] = shapes_.at(weight);
  tensor_values_[name] = tensor_values_.at(weight);
  add_node(name, "torch.ops.aten.copy_.default",
           {{{"name", "self"}, {"arg", {{"as_tensor", {{"name", weight}}}}}, {"kind", 1}},
            {{"name", "src"}, {"arg", {{"as_tensor", {{"name", value}}}}}, {"kind", 1}}},
           {{{"as_tensor", {{"name", name}}}}}, {name}, true);
}

std::string ProgramWriter::add_input(const tracing::ExportArgument& input) {
  const std::string name = new_name(input.name);
  inputs_.push_back(name);
  const Tensor a = input.first.contiguous(), b = input.second.contiguous();
  const std::vector<Dims> probes = tracing::probes_of(input);
  std::vector<OpenSize> sizes, strides(static_cast<size_t>(a.ndim()));
  Json size_list = Json::array();
  for (size_t i = 0; i < strides.size(); ++i) {
    strides[i] = {a.strides()[i], b.strides()[i], ""};
    OpenSize size{a.sizes()[i], b.sizes()[i], "", a.sizes()[i] != b.sizes()[i]};
    for (const Dims& probe : probes) size.probes.emplace_back(probe[i]);
    const std::string own = i < input.size_names.size() ? input.size_names[i] : "";
    const auto named = own.empty() ? named_sizes_.end() : named_sizes_.find(own);
    if (size.is_open && named != named_sizes_.end() && named->second.a == size.a && named->second.b == size.b) {
      size.expression = named->second.expression;
    } else if (size.is_open) {
      size.expression = symbol_expression(new_symbol(1));
      if (!own.empty()) named_sizes_.emplace(own, size);
    }
    size_list.push_back(size_json(size));
    sizes.push_back(std::move(size));
  }
  tensor_values_[name] = meta_json(a.dtype(), size_list, strides_json(strides, sizes), false);
  shapes_[name] = std::move(sizes);
  return name;
}

std::string ProgramWriter::declare_number(const std::string& name, const Traced& number, std::string expression) {
  if (expression.empty())
    expression = concat("Symbol('", new_symbol(), "', ", number.a.is_int() ? "integer=True)" : "real=True)");
  if (number.a.is_int()) {
    int_values_[name] = {{"as_expr", {{"expr_str", expression}, {"hint", {{"as_int", number.b.to_int()}}}}}};
  } else {
    float_values_[name] = {{"as_expr", {{"expr_str", expression}, {"hint", {{"as_float", number.b.to_float()}}}}}};
  }
  expressions_[name] = std::move(expression);
  return name;
}

void ProgramWriter::add_node(std::string_view name, const std::string& target, Json inputs, Json outputs, Strings names,
                             bool writes) {
  nodes_.push_back({{{"target", target},
                     {"inputs", std::move(inputs)},
                     {"outputs", std::move(outputs)},
                     {"metadata", Json::object()},
                     {"is_hop_single_tensor_return", nullptr},
                     {"name", name}},
                    std::move(names),
                    writes});
}

std::vector<ProgramWriter::Node> ProgramWriter::live_nodes(const std::vector<Node>& nodes,
                                                           const std::vector<Json>& outputs,
                                                           std::set<std::string>& used) {
  const auto use = [&](const auto& self, const Json& value) -> void {
    if (value.is_object()) {
      for (auto it = value.begin(); it != value.end(); ++it) {
        const bool is_name = (it.key() == "name" || it.key() == "as_name") && it.value().is_string();
        if (is_name) used.insert(it.value().get<std::string>());
        if (it.key() != "as_graph") self(self, it.value());  // a subgraph reads only its operands
      }
    } else if (value.is_array()) {
      for (const Json& item : value) self(self, item);
    }
  };
  for (const Json& output : outputs) use(use, output);
  std::vector<Node> live;
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    const bool is_used =
        std::ranges::any_of(node->outputs, [&](const std::string& name) { return used.contains(name); });
    if (!is_used && !node->writes) continue;
    for (const Json& input : node->json["inputs"]) use(use, input["arg"]);
    live.push_back(*node);
  }
  std::ranges::reverse(live);
  return live;
}

// The signature's inputs, and the graph's inputs in the same order.
Json ProgramWriter::specs_json(Json& inputs, const std::vector<Stored>& constants) const {
  Json specs = Json::array();
  const auto add = [&](const std::string& name, const char* kind, Json spec) {
    inputs.push_back({{"as_tensor", {{"name", name}}}});
    specs.push_back({{kind, std::move(spec)}});
  };
  for (const bool parameters : {true, false}) {
    for (const Stored& weight : weights_) {
      if (weight.is_parameter != parameters) continue;
      Json spec = {{"arg", {{"name", weight.name}}}};
      spec[parameters ? "parameter_name" : "buffer_name"] = weight.path;
      if (!parameters) spec["persistent"] = true;
      add(weight.name, parameters ? "parameter" : "buffer", spec);
    }
  }
  for (const Stored& constant : constants) {
    add(constant.name, "tensor_constant",
        {{"arg", {{"name", constant.name}}}, {"tensor_constant_name", constant.path}});
  }
  for (const std::string& name : inputs_) {
    add(name, "user_input", {{"arg", {{"as_tensor", {{"name", name}}}}}});
  }
  return specs;
}

void ProgramWriter::write_file(const std::string& path, const std::string& in_spec, const std::string& out_spec,
                               const ops::Value& examples) const {
  Json nodes = Json::array(), inputs = Json::array(), output_specs = Json::array(), names = inputs_;
  std::set<std::string> used;
  const std::vector<Node> live = live_nodes(nodes_, outputs_, used);
  std::vector<Stored> constants = constants_;
  std::erase_if(constants, [&](const Stored& one) { return !used.contains(one.name); });
  std::set<std::string> made;
  for (const Node& node : live) {
    nodes.push_back(node.json);
    made.insert(node.outputs.begin(), node.outputs.end());
  }
  for (const Json& output : outputs_) output_specs.push_back({{"user_output", {{"arg", output}}}});
  const Json specs = specs_json(inputs, constants);
  for (const Json& input : inputs) made.insert(input["as_tensor"]["name"].get<std::string>());
  // Only for values that are used.
  const auto kept = [&](const Json& values) {
    Json out = Json::object();
    for (auto it = values.begin(); it != values.end(); ++it) {
      if (made.contains(it.key())) out[it.key()] = it.value();
    }
    return out;
  };
  const Json graph = {{"inputs", inputs},
                      {"outputs", outputs_},
                      {"nodes", nodes},
                      {"tensor_values", kept(tensor_values_)},
                      {"sym_int_values", kept(int_values_)},
                      {"sym_bool_values", Json::object()},
                      {"sym_float_values", kept(float_values_)},
                      {"is_single_tensor_return", false},
                      {"custom_obj_values", Json::object()}};
  const Json call = {{"inputs", Json::array()},
                     {"outputs", Json::array()},
                     {"in_spec", in_spec},
                     {"out_spec", out_spec},
                     {"forward_arg_names", names}};
  // Only for symbols that are used.
  const std::string graph_text = graph.dump();
  Json ranges = Json::object();
  for (auto it = ranges_.begin(); it != ranges_.end(); ++it) {
    if (graph_text.find(concat("Symbol('", it.key(), "'")) != std::string::npos) ranges[it.key()] = it.value();
  }
  const Json root = {{"graph_module",
                      {{"graph", graph},
                       {"signature", {{"input_specs", specs}, {"output_specs", output_specs}}},
                       {"module_call_graph", {{{"fqn", ""}, {"signature", call}}}},
                       {"metadata", Json::object()},
                       {"treespec_namedtuple_fields", Json::object()}}},
                     {"opset_version", {{"aten", 10}}},
                     {"range_constraints", ranges},
                     {"schema_version", {{"major", kMajor}, {"minor", kMinor}}},
                     {"verifiers", {"TRAINING"}},
                     {"torch_version", "2.15.0"},
                     {"guards_code", Json::array()}};
  const std::string stem = std::filesystem::path(path).filename().string();
  const std::string folder = stem.substr(0, stem.find('.')) + "/";
  ZipWriter zip(path);
  const auto add_tensors = [&](const std::vector<Stored>& all, const char* place, const char* file,
                               const std::string& list) {
    Json config = Json::object();
    for (size_t i = 0; i < all.size(); ++i) {
      const std::string name = concat(file, i);
      zip.add(concat(folder, place, name), bytes_of(all[i].tensor));
      config[all[i].path] = {{"path_name", name},
                             {"is_param", all[i].is_parameter},
                             {"use_pickle", false},
                             {"tensor_meta", meta_json(all[i].tensor.dtype(), ints_json(all[i].tensor.sizes()),
                                                       ints_json(all[i].tensor.strides()), all[i].is_parameter)}};
    }
    zip.add(concat(folder, place, list), Json({{"config", config}}).dump());
  };
  zip.add(folder + "archive_format", "pt2");
  zip.add(folder + "archive_version", "0");
  zip.add(folder + "byteorder", "little");
  zip.add(folder + ".data/version", "6\n");
  add_tensors(weights_, "data/weights/", "weight_", "model_weights_config.json");
  add_tensors(constants, "data/constants/", "tensor_", "model_constants_config.json");
  zip.add(folder + "data/sample_inputs/model.pt", torch_file_bytes(path, examples));
  zip.add(folder + "models/model.json", root.dump());
  zip.finish();
}

}  // namespace tensord::jit::pt2
