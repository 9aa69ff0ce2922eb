// Branches that depend on data: both sides are written to the file.
#include <algorithm>

#include "core/base/error.h"
#include "core/jit/tracing/tracer.h"

namespace tensord::jit::tracing {

using ops::Value;

// A side of a branch may only write to memory that it allocated itself.
void Tracer::check_branch_writes(const Node& node, const Tensor& tensor) const {
  const StorageImpl* storage = tensor.storage().get();
  if (joined_storages_.contains(storage)) {
    refuse(node, "writes to the result of a branch that depends on data, which may be another tensor's memory");
  }
  if (outer_storages_ && (outer_storages_->contains(storage) || !tensors_.contains(tensor.impl()))) {
    refuse(node, "writes, in a branch that depends on data, to memory that was there before");
  }
}

std::set<const StorageImpl*> Tracer::storages_so_far() const {
  std::set<const StorageImpl*> all;
  for (const Tensor& tensor : kept_) {
    if (!tensor.is_meta()) all.insert(tensor.storage().get());
  }
  for (const auto& [storage, owners] : attribute_storages_) all.insert(storage);
  return all;
}

// Runs one side for both examples, even if the condition selects the other one.
std::vector<Traced> Tracer::run_branch(const Node& node, const Traced& condition, bool way) {
  const std::vector<bool> dead = dead_probes_;
  const std::optional<std::set<const StorageImpl*>> outer = outer_storages_;
  for (size_t set = 0; set < dead.size(); ++set) {
    const std::optional<Value> known = probe(condition, set);
    if (known && known->is_bool() && known->to_bool() != way) dead_probes_[set] = true;
  }
  std::set<const StorageImpl*> known_storages = storages_so_far();
  if (outer) known_storages.insert(outer->begin(), outer->end());
  outer_storages_ = std::move(known_storages);
  target_.begin_branch();
  const std::vector<Traced> results = run_block(*node.blocks()[way ? 0 : 1]);
  std::vector<Traced> tensors;
  Strings names;
  for (const Traced& result : results) {
    if (!result.a.is_strided()) continue;
    tensors.push_back(result);
    names.push_back(name_of(result));
  }
  target_.end_branch(*this, tensors, names);
  dead_probes_ = dead;
  outer_storages_ = outer;
  return results;
}

Traced Tracer::join_tensors(const Traced& condition, const Traced& yes, const Traced& no) const {
  const auto taken = [&](const Value& way) -> const Traced& { return way.to_bool() ? yes : no; };
  const Value a = taken(condition.a).a.to_tensor().clone();
  Traced out = wrap(a, is_double_ ? Value(taken(condition.b).b.to_tensor().clone()) : a);
  std::vector<std::optional<Value>> found(dead_probes_.size());
  for (size_t set = 0; set < found.size(); ++set) {
    const auto shape_in = [&](const Traced& one) -> std::optional<Value> {
      const std::optional<Value> value = probe(one, set);
      if (!value || !value->is_strided()) return std::nullopt;
      return Tensor::meta(value->to_tensor().sizes(), value->to_tensor().dtype());
    };
    const std::optional<Value> known = probe(condition, set), first = shape_in(yes), second = shape_in(no);
    if (known && known->is_bool()) {
      found[set] = known->to_bool() ? first : second;
    } else if (first && second && first->to_tensor().sizes() == second->to_tensor().sizes()) {
      found[set] = first;  // otherwise it depends on the condition
    }
  }
  set_probes(out, found);
  return out;
}

void Tracer::run_branchs(const Node& node, const Traced& condition) {
  const std::set<const StorageImpl*> before = storages_so_far();
  std::vector<std::vector<Traced>> ways;
  for (const bool way : {true, false}) ways.push_back(run_branch(node, condition, way));
  const auto is_shared = [&](const Traced& one) { return before.contains(one.a.to_tensor().storage().get()); };
  std::vector<Traced> tensors;
  for (size_t i = 0; i < node.outputs().size(); ++i) {
    const Traced &yes = ways[0][i], &no = ways[1][i];
    if (!yes.a.is_strided() || !no.a.is_strided()) {
      const bool is_same = !is_dynamic(yes) && !is_dynamic(no) && !yes.items && !no.items && yes.a.equals(no.a);
      if (!is_same || yes.a.is_strided() != no.a.is_strided()) {
        refuse(node, concat("a branch that depends on data returns a ", yes.a.tag_name(), " or a ", no.a.tag_name(),
                            ", and ", format(), " supports only tensors there"));
      }
      set(node.output(i), yes);
      continue;
    }
    const Tensor &first = yes.a.to_tensor(), &second = no.a.to_tensor();
    if (first.dtype() != second.dtype() || first.ndim() != second.ndim()) {
      refuse(node, concat("a branch that depends on data returns ", describe(first), " or ", describe(second)));
    }
    Traced joined = join_tensors(condition, yes, no);
    bind(joined, "");
    if (is_shared(yes) || is_shared(no)) joined_storages_.insert(joined.a.to_tensor().storage().get());
    set(node.output(i), joined);
    tensors.push_back(std::move(joined));
  }
  const Strings names = target_.add_choice(*this, condition.number, tensors);
  for (size_t i = 0, next = 0; i < node.outputs().size(); ++i) {
    Traced result = at(node.output(i));
    if (!ways[0][i].a.is_strided()) continue;
    bind(result, names.at(next++));
    set(node.output(i), std::move(result));
  }
}

}  // namespace tensord::jit::tracing
