#include "core/jit/exporters/torchscript/export.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/jit/archive/model_writer.h"
#include "core/jit/exporters/torchscript/source_printer.h"

namespace tensord::jit {
namespace {

using ops::Value;

constexpr const char* kModule = "__torch__.converted";
// The archive version that PyTorch 1.13 and later write.
constexpr const char* kVersion = "10\n";

// Converts objects of another format to TorchScript modules and defines their classes.
class Classes {
 public:
  explicit Classes(const std::set<const TensorImpl*>& left_out) : left_out_(left_out) {}
  ops::ObjectPtr add(const ops::Object& source, const std::string& methods,
                     const std::map<std::string, Value>& constants) {
    const std::string name = concat("M", count_++);
    auto type = std::make_shared<ops::ClassType>(concat(kModule, ".", name), /*is_module=*/true);
    type->parameter_names = kept(source, source.type->parameter_names);
    type->buffer_names = kept(source, source.type->buffer_names);
    std::vector<Value> slots;
    std::string text = concat("class ", name, "(Module):\n  __parameters__ = [", names(type->parameter_names),
                              "]\n  __buffers__ = [", names(type->buffer_names), "]\n");
    const auto add_attribute = [&](const std::string& attribute, const std::string& annotation, ops::TypePtr kind,
                                   Value value) {
      text += is_identifier(attribute) ? concat("  ", attribute, " : ", annotation, "\n")
                                       : concat("  __annotations__[\"", attribute, "\"] = ", annotation, "\n");
      type->add_attribute(attribute, std::move(kind));
      slots.push_back(std::move(value));
    };
    add_attribute("training", "bool", ops::bool_type(), false);
    for (size_t i = 0; i < source.slots.size(); ++i) {
      const std::string& attribute = source.type->attributes()[i].name;
      const Value& value = source.slots[i];
      if (is_left_out(value)) continue;
      if (value.is_strided()) {
        add_attribute(attribute, "Tensor", ops::tensor_type(), value);
      } else if (value.is_object()) {
        const ops::ObjectPtr below = add(*value.to_object(), "", {});
        add_attribute(attribute, below->type->name(), std::const_pointer_cast<ops::ClassType>(below->type), below);
      } else if (is_plain(value, *source.type->attributes()[i].type)) {
        const ops::TypePtr& kind = source.type->attributes()[i].type;
        if (attribute != "training") add_attribute(attribute, kind->str(), kind, value);
      } else if (attribute != "training") {
        fail(ErrorCode::kUnimplemented, "attribute '", attribute, "' is a ", value.tag_name(),
             ", which is not written");
      }
    }
    for (const auto& [attribute, value] : constants) {
      const ops::TypePtr kind = value.is_tensor() ? ops::tensor_type() : ops::type_of(value);
      add_attribute(attribute, kind->str(), kind, value);
    }
    source_ += text + methods + "\n";
    auto object = make_intrusive<ops::Object>(type);
    object->slots = std::move(slots);
    return object;
  }
  const std::string& source() const { return source_; }

 private:
  bool is_left_out(const Value& value) const {
    return value.is_strided() && left_out_.contains(value.to_tensor().impl());
  }
  // Without objects, whose classes belong to the original format.
  static bool is_plain(const Value& value, const ops::Type& type) {
    if (value.is_list() || value.is_tuple() || value.is_dict())
      return type.str().find("__torch__") == std::string::npos;
    return value.is_none() || value.is_number() || value.is_string();
  }
  std::vector<std::string> kept(const ops::Object& source, std::vector<std::string> names) const {
    std::erase_if(names, [&](const std::string& name) {
      const int slot = source.type->find_attribute(name);
      return slot >= 0 && is_left_out(source.slots[static_cast<size_t>(slot)]);
    });
    return names;
  }
  static std::string names(const std::vector<std::string>& all) {
    std::string out;
    for (const std::string& name : all) out += "\"" + name + "\", ";
    return out;
  }
  const std::set<const TensorImpl*>& left_out_;
  std::string source_;
  int count_ = 0;
};

}  // namespace

void export_torchscript(const std::string& path, const ops::ObjectPtr& object,
                        const std::vector<TorchScriptMethod>& methods,
                        const std::function<bool(const Tensor&)>& requires_grad,
                        const std::set<const TensorImpl*>& left_out) {
  SourcePrinter printer(object);
  std::string text;
  // The first class is the root.
  const std::string self = concat(kModule, ".M0");
  for (const TorchScriptMethod& method : methods)
    text += printer.print(method.name, *method.schema, *method.graph, self);
  Classes classes(left_out);
  const ops::ObjectPtr root = classes.add(*object, text, printer.constants());
  write_model_archive(path,
                      {{"code/__torch__/converted.py", classes.source()},
                       {"constants.pkl", std::string("\x80\x02).", 4)},
                       {"version", kVersion}},
                      root, {.get_state = {}, .requires_grad = requires_grad});
}

}  // namespace tensord::jit
