#include "core/jit/exporters/pt2/export.h"

#include "core/base/error.h"
#include "core/jit/exporters/pt2/program_writer.h"

namespace tensord::jit::pt2 {
namespace {

Json spec(Json type, Json context, Json children) {
  return {{"type", std::move(type)}, {"context", std::move(context)}, {"children_spec", std::move(children)}};
}

Json leaf_spec() { return spec(nullptr, nullptr, Json::array()); }
std::string spec_text(const Json& tree) { return Json({1, tree}).dump(); }

// Adds the leaves of a result to the program and returns its pytree.
Json add_outputs(ProgramWriter& writer, tracing::Tracer& tracer, const Traced& value) {
  if (!value.items) {
    if (value.a.is_strided()) {
      writer.add_output({{"as_tensor", {{"name", tracer.name_of(value)}}}});
    } else if (value.a.is_none() && !value.is_dynamic) {
      writer.add_output({{"as_none", true}});
    } else if (value.a.is_int() && !value.number.empty()) {
      writer.add_output({{"as_sym_int", {{"as_name", value.number}}}});
    } else if (value.a.is_int() && !value.is_dynamic) {
      writer.add_output({{"as_int", value.a.to_int()}});
    } else if (value.a.is_bool() && !value.is_dynamic) {
      writer.add_output({{"as_bool", value.a.to_bool()}});
    } else {
      fail(ErrorCode::kUnimplemented, "the result holds a ", value.a.tag_name(), ", which is not a tensor");
    }
    return leaf_spec();
  }
  Json children = Json::array(), keys = Json::array();
  if (value.a.is_dict()) {
    for (size_t i = 0; i < value.items->size(); i += 2) {
      const ops::Value& key = (*value.items)[i].a;
      if (!key.is_string() && !key.is_int()) {
        fail(ErrorCode::kUnimplemented, "the result has a dict whose keys are neither texts nor ints");
      }
      keys.push_back(key.is_string() ? Json(key.to_string()) : Json(key.to_int()));
      children.push_back(add_outputs(writer, tracer, (*value.items)[i + 1]));
    }
    return spec("builtins.dict", keys.dump(), children);
  }
  const ops::TypePtr type = value.a.is_tuple() ? value.a.to_tuple()->type : nullptr;
  for (const Traced& item : *value.items) children.push_back(add_outputs(writer, tracer, item));
  if (type && type->field_names().size() == children.size() && !children.empty()) {
    for (const std::string& field : type->field_names()) keys.push_back(field);
    return spec("builtins.dict", keys.dump(), children);
  }
  return spec(value.a.is_tuple() ? "builtins.tuple" : "builtins.list", "null", children);
}

}  // namespace

void export_program(const std::string& path, const Graph& graph, const ops::ObjectPtr& self,
                    const std::vector<tracing::ExportArgument>& given) {
  ProgramWriter writer;
  tracing::Tracer tracer(writer, self, tracing::has_open_sizes(given), tracing::count_probes(given));
  std::vector<Traced> arguments{tracing::wrap(self)};
  std::vector<ops::Value> examples;
  Json leaves = Json::array();
  for (const tracing::ExportArgument& input : given) {
    if (!input.first.defined()) {
      arguments.push_back(tracing::wrap(input.fixed));
      continue;
    }
    // A copy, because the program may write to its inputs.
    const std::string name = writer.add_input(input);
    arguments.push_back(tracer.add_input(name, input.first.clone(), input.second.clone(), tracing::probes_of(input)));
    examples.emplace_back(input.second);
    leaves.push_back(leaf_spec());
  }
  const Traced result = tracer.run(*graph.block(), std::move(arguments));
  const Json out_spec = add_outputs(writer, tracer, result);
  const Json in_spec = spec("builtins.tuple", "null",
                            {spec("builtins.tuple", "null", leaves), spec("builtins.dict", "[]", Json::array())});
  const ops::Value positional = make_intrusive<ops::TupleObject>(std::move(examples), nullptr);
  const ops::Value none_by_name = make_intrusive<ops::DictObject>(ops::string_type(), ops::tensor_type());
  writer.write_file(path, spec_text(in_spec), spec_text(out_spec),
                    make_intrusive<ops::TupleObject>(std::vector<ops::Value>{positional, none_by_name}, nullptr));
}

}  // namespace tensord::jit::pt2
