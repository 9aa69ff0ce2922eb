#include "core/jit/tracing/call.h"

#include "core/base/error.h"

namespace tensord::jit::tracing {

bool Target::is_same_number(const Traced& one, const Traced& other) const {
  if (!one.is_number() || one.a.tag() != other.a.tag() || one.is_dynamic != other.is_dynamic) return false;
  return one.is_dynamic ? !one.number.empty() && one.number == other.number : one.a.equals(other.a);
}

void Call::refuse_form() const { refuse(concat("cannot be exported to ", tracer_.format())); }

const Traced& Call::first() const {
  if (arguments_.empty()) refuse_form();
  return arguments_[0];
}

bool Call::has(const char* name) const {
  const int index = op_.schema.find_argument(name);
  return index >= 0 && !arguments_[static_cast<size_t>(index)].a.is_none();
}

const Traced& Call::in(const char* name) const {
  const int index = op_.schema.find_argument(name);
  if (index < 0) refuse(concat("this overload has no '", name, "' and cannot be exported to ", tracer_.format()));
  return arguments_[static_cast<size_t>(index)];
}

const Tensor& Call::t(const char* name) const {
  if (!in(name).a.is_strided()) refuse_form();
  return in(name).a.to_tensor();
}
const Tensor& Call::t2(const char* name) const { return tracer_.is_double() ? in(name).b.to_tensor() : t(name); }

std::vector<Traced> Call::list(const char* name) const {
  const Traced& value = in(name);
  return value.items ? *value.items : std::vector<Traced>{value};
}

const ops::Value& Call::fixed(const char* name, const Traced& value) const {
  if (value.is_dynamic) refuse(concat("'", name, "' depends on a dynamic size or on data"));
  return value.a;
}

Dims Call::ints(const char* name) const {
  Dims out;
  for (const Traced& item : list(name)) out.push_back(fixed(name, item).to_int());
  return out;
}

std::vector<double> Call::numbers(const char* name) const {
  std::vector<double> out;
  for (const Traced& item : list(name)) out.push_back(fixed(name, item).to_float());
  return out;
}

int64_t Call::integer(const char* name) const {
  const ops::Value& value = fixed(name, in(name));
  return value.is_bool() ? int64_t{value.to_bool()} : value.to_int();
}

double Call::number(const char* name) const {
  const ops::Value& value = fixed(name, in(name));
  return value.is_float() ? value.to_float() : static_cast<double>(integer(name));
}

bool Call::flag(const char* name) const { return has(name) && integer(name) != 0; }
std::string Call::text(const char* name) const { return in(name).a.to_string(); }
int64_t Call::dim(const char* name, int64_t rank) const { return wrap_dim(integer(name), rank); }

void Call::set_items(const Strings& names, size_t i) {
  std::vector<Traced>& items = *results_[i].items;
  if (items.size() != names.size()) refuse("gives another number of tensors than is known");
  for (size_t k = 0; k < names.size(); ++k) tracer_.bind(items[k], names[k]);
}

}  // namespace tensord::jit::tracing
