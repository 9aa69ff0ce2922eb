// The model's own tensors: how a program reads, writes and replaces them.
#include <algorithm>
#include <set>

#include "core/base/error.h"
#include "core/jit/tracing/tracer.h"

namespace tensord::jit::tracing {
namespace {

void collect_tensors(const Traced& value, std::vector<Tensor>& tensors) {
  if (value.a.is_strided()) tensors.push_back(value.a.to_tensor());
  if (!value.items) return;
  for (const Traced& item : *value.items) collect_tensors(item, tensors);
}

}  // namespace

std::string Tracer::weight_name(const Tensor& tensor) {
  const auto found = attributes_.find(tensor.impl());
  if (!target_.shares_memory() || found == attributes_.end()) return "";
  std::string& name = weights_[tensor.impl()];
  if (name.empty()) name = target_.add_weight(found->second.path, tensor, found->second.is_parameter);
  return name;
}

void Tracer::check_written(const Node& node, const Tensor& tensor) const {
  const auto owners = attribute_storages_.find(tensor.storage().get());
  if (owners == attribute_storages_.end()) {
    if (!tensors_.contains(tensor.impl())) refuse(node, "writes to a constant, which would stay for the next call");
    return;
  }
  const Attribute& owner = attributes_.at(owners->second[0]);
  if (owner.is_parameter) refuse(node, "writes to the model's own tensor '" + owner.path + "', which is a parameter");
  if (owners->second.size() > 1)
    refuse(node, "writes to the model's own tensor '" + owner.path + "', over whose memory others lie");
}

void Tracer::check_writes(const Node& node, const std::vector<Tensor>& written, const std::vector<Traced>& arguments,
                          bool is_open) {
  for (const Tensor& tensor : written) {
    check_branch_writes(node, tensor);
    if (target_.shares_memory()) {
      check_written(node, tensor);
    } else if (is_open) {
      // Records the constant's value before the write.
      for (const Traced& argument : arguments) {
        if (argument.a.is_strided() && tensor.is_same(argument.a.to_tensor())) name_of(argument);
      }
    }
  }
}

Tracer::SetAttribute* Tracer::find_set(const ops::Object* owner, const std::string& name) {
  const auto is_it = [&](const SetAttribute& one) { return one.owner == owner && one.name == name; };
  const auto found = std::ranges::find_if(set_attributes_, is_it);
  return found == set_attributes_.end() ? nullptr : &*found;
}

void Tracer::get_attribute(const Node& node) {
  const ops::ObjectPtr owner = at(node.input()).a.to_object();
  if (const SetAttribute* one = find_set(owner.get(), node.name())) return set(node.output(), one->now);
  Traced value = wrap(owner->attribute(node.name()), owner->attribute(node.name()));
  const auto found = paths_.find(owner.get());
  value.path = (found == paths_.end() ? std::string() : found->second) + node.name();
  set_fixed_probes(value);
  if (target_.shares_memory() && value.a.is_strided()) bind(value, weight_name(value.a.to_tensor()));
  set(node.output(), std::move(value));
}

void Tracer::set_attribute(const Node& node) {
  const ops::ObjectPtr owner = at(node.input(0)).a.to_object();
  const Traced& now = at(node.input(1));
  if (outer_storages_) refuse(node, concat("sets the attribute '", node.name(), "' in a branch that depends on data"));
  if (!target_.shares_memory())
    refuse(node, concat("sets the attribute '", node.name(), "', which cannot be exported to ", format()));
  SetAttribute* known = find_set(owner.get(), node.name());
  if (!known) {
    const ops::Value& old = owner->attribute(node.name());
    const auto place = old.is_strided() ? attributes_.find(old.to_tensor().impl()) : attributes_.end();
    if (place == attributes_.end()) {
      refuse(node, concat("sets the attribute '", node.name(), "', which is a ", old.tag_name(), ", and ", format(),
                          " keep nothing but tensors from one call to the next"));
    }
    if (place->second.is_parameter) refuse(node, "sets '" + place->second.path + "', which is a parameter");
    Traced before = wrap(old, old);
    set_fixed_probes(before);
    bind(before, weight_name(old.to_tensor()));
    set_attributes_.push_back({owner.get(), node.name(), std::move(before), {}});
    known = &set_attributes_.back();
  }
  if (!now.a.is_strided()) refuse(node, concat("sets the attribute '", node.name(), "' to a ", now.a.tag_name()));
  const Tensor &old = known->old.a.to_tensor(), &a = now.a.to_tensor(), &b = now.b.to_tensor();
  if (a.sizes() != old.sizes() || b.sizes() != old.sizes() || a.dtype() != old.dtype()) {
    refuse(node, concat("sets the attribute '", node.name(), "', which is ", describe(old), ", to ", describe(b),
                        ", and ", format(), " keep its shape and type"));
  }
  known->now = now;
}

// Where the program replaces an attribute's tensor, the file copies the elements into the old one. The two are
// equivalent only if memory is not shared: no output may alias the old tensor, and no two attributes may share memory.
void Tracer::write_attributes(const Traced& result) {
  std::erase_if(set_attributes_, [](const SetAttribute& one) { return one.now.a.is_same(one.old.a); });
  std::vector<Tensor> results;
  collect_tensors(result, results);
  std::set<const StorageImpl*> taken;
  for (const SetAttribute& one : set_attributes_) {
    const StorageImpl *old = one.old.a.to_tensor().storage().get(), *now = one.now.a.to_tensor().storage().get();
    const bool is_given =
        std::ranges::any_of(results, [&](const Tensor& tensor) { return tensor.storage().get() == old; });
    if (is_given || attribute_storages_.at(old).size() > 1 || attribute_storages_.contains(now) ||
        !taken.insert(now).second) {
      fail(ErrorCode::kUnimplemented, "the attribute '", attributes_.at(one.old.a.to_tensor().impl()).path,
           "' is set, and its memory is also that of a result or of another attribute, which ", format(),
           " cannot express");
    }
  }
  for (const SetAttribute& one : set_attributes_)
    target_.write_weight(weight_name(one.old.a.to_tensor()), name_of(one.now));
}

}  // namespace tensord::jit::tracing
