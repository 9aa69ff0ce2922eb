#include "server/executor/model/configured_outputs.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "core/base/error.h"
#include "server/executor/model/generation_options.h"
#include "server/executor/model/reshape.h"
#include "server/executor/model/sequence_model.h"
#include "server/executor/model/unsigned_widening.h"

namespace tensord::server {
namespace {

std::string names_of_results(const std::vector<InferTensor>& outputs) {
  std::string names;
  for (const InferTensor& output : outputs) names += concat(names.empty() ? "'" : ", '", output.name, "'");
  return names.empty() ? "nothing" : names;
}

TensorSpec spec_named(const std::string& name) {
  TensorSpec spec;
  spec.name = name;
  return spec;
}

}  // namespace

void keep_names_apart(std::vector<TensorSpec>& specs) {
  std::set<std::string> taken;
  for (const TensorSpec& spec : specs) taken.insert(spec.name);
  for (TensorSpec& spec : specs) {
    std::erase_if(spec.aliases, [&](const std::string& alias) { return !taken.insert(alias).second; });
  }
}

size_t trailing_index(const std::string& name, size_t otherwise) {
  const size_t mark = name.rfind("__");
  if (mark == std::string::npos) return otherwise;
  size_t index = 0;
  const char* end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + mark + 2, end, index);
  return error == std::errc() && at == end ? index : otherwise;
}

bool is_numbered(const std::string& name, const std::string& prefix) {
  return name.starts_with(prefix) && trailing_index("__" + name.substr(prefix.size()), SIZE_MAX) != SIZE_MAX;
}

std::string names_of(const std::vector<TensorSpec>& specs) {
  std::string names;
  for (const TensorSpec& spec : specs) names += concat(names.empty() ? "'" : ", '", spec.name, "'");
  return names;
}

void apply_config(const ModelConfig::TensorConfig& config, const std::string& file, bool has_batch, TensorSpec& spec) {
  if (config.name != spec.name) {
    spec.aliases.push_back(spec.name);
    spec.name = config.name;
  }
  if (!config.datatype.empty()) {
    spec.datatype = parse_datatype(config.datatype);
    check(spec.datatype.has_value(), file, ": data_type ", config.datatype, " of '", config.name, "' is not supported");
  }
  const auto with_batch = [&](const std::vector<int64_t>& dims) {
    Dims out;
    if (has_batch) out.push_back(-1);
    for (const int64_t dim : dims) out.push_back(dim);
    return out;
  };
  if (config.has_dims) spec.shape = with_batch(config.dims);
  if (config.has_reshape) spec.reshape = with_batch(config.reshape);
}

ConfiguredOutputs::ConfiguredOutputs(const std::string& file, std::vector<TensorSpec> own, bool own_is_complete,
                                     const ModelConfig& config, std::string numbered, bool has_own_names)
    : numbered_(std::move(numbered)),
      has_own_names_(has_own_names),
      own_(std::move(own)),
      own_is_complete_(own_is_complete),
      is_complete_(own_is_complete || !config.outputs.empty()),
      selects_(!config.outputs.empty()),
      has_batch_(config.max_batch_size > 0) {
  keep_names_apart(own_);
  for (size_t i = 0; !selects_ && i < own_.size(); ++i) {
    specs_.push_back(own_[i]);
    bindings_.push_back({static_cast<int>(i), own_[i].name, ""});
  }
  for (size_t i = 0; i < config.outputs.size(); ++i) add(file, config.outputs[i], i, has_batch_);
  const ModelConfig server = server_tensors(config);
  for (size_t i = 0; i < server.outputs.size(); ++i) {
    add(file, server.outputs[i], config.outputs.size() + i, has_batch_);
  }
  if (selects_ && config.sequence_batching) {
    const GenerationOptions generation = generation_options(config);
    keep(generation.feedback_output);
    keep(generation.end_output);
  }
  keep_names_apart(specs_);
}

// A configured output refers to the result of its name. If results have no names, it refers to the one whose number it
// has, or to the one at `place`.
void ConfiguredOutputs::add(const std::string& file, const ModelConfig::TensorConfig& output, size_t place,
                            bool has_batch) {
  auto own = std::find_if(own_.begin(), own_.end(),
                          [&](const TensorSpec& candidate) { return candidate.answers_to(output.name); });
  place = trailing_index(output.name, place);
  if (own == own_.end() && place < own_.size()) {
    own = own_.begin() + static_cast<ptrdiff_t>(place);
    const bool says_number =
        has_own_names_ ? is_numbered(output.name, "OUTPUT__") : trailing_index(output.name, SIZE_MAX) != SIZE_MAX;
    check(says_number || is_numbered(own->name, numbered_), file, ": config.pbtxt names output '", output.name,
          "', but the model's outputs are ", names_of(own_));
  }
  check(own != own_.end() || !own_is_complete_, file, ": config.pbtxt names output '", output.name,
        "', but forward returns ", own_.size());
  const int index = own == own_.end() ? -1 : static_cast<int>(own - own_.begin());
  TensorSpec spec = index < 0 ? spec_named(output.name) : *own;
  const std::string own_name = spec.name;
  apply_config(output, file, has_batch, spec);
  check(!spec.datatype || !is_widened_unsigned(*spec.datatype), file, ": data_type ", output.datatype, " of output '",
        output.name, "' is not supported: no tensor has it");
  check(index < 0 || !own->datatype || own->datatype == spec.datatype, file, ": config.pbtxt: output '", output.name,
        "' is of type ", output.datatype, ", but forward returns ", index < 0 ? "" : name_of(*own->datatype));
  const auto bound = std::find_if(bindings_.begin(), bindings_.end(), [&](const Binding& binding) {
    return index < 0 ? binding.own_name == own_name : binding.own_index == index;
  });
  if (bound != bindings_.end()) {
    check(!selects_, file, ": config.pbtxt has two outputs for result ", own_name, ", '",
          specs_[static_cast<size_t>(bound - bindings_.begin())].name, "' and '", output.name, "'");
    specs_[static_cast<size_t>(bound - bindings_.begin())] = std::move(spec);
    return;
  }
  specs_.push_back(std::move(spec));
  bindings_.push_back({index, own_name, index < 0 ? concat(numbered_, place) : ""});
}

// Keeps an output that generation steps need even if the configuration does not list it.
void ConfiguredOutputs::keep(const std::string& name) {
  const auto is_it = [&](const TensorSpec& spec) { return spec.answers_to(name); };
  if (name.empty() || std::any_of(specs_.begin(), specs_.end(), is_it)) return;
  const auto own = std::find_if(own_.begin(), own_.end(), is_it);
  if (own == own_.end() && own_is_complete_) return;
  specs_.push_back(own == own_.end() ? spec_named(name) : *own);
  bindings_.push_back({own == own_.end() ? -1 : static_cast<int>(own - own_.begin()), specs_.back().name, ""});
}

InferTensor ConfiguredOutputs::take(std::vector<InferTensor>& outputs, const Binding& binding,
                                    const std::string& name) const {
  for (const std::string* wanted : {&binding.own_name, &binding.positional}) {
    const auto found =
        std::find_if(outputs.begin(), outputs.end(), [&](const InferTensor& output) { return output.name == *wanted; });
    if (found != outputs.end()) return *found;
  }
  fail(ErrorCode::kFailedPrecondition, "config.pbtxt lists output '", name, "', but the model returned ",
       names_of_results(outputs));
}

void ConfiguredOutputs::finish(InferTensor& output, const TensorSpec& spec) const {
  if (output.name != spec.name) output.name = spec.name;
  if (spec.datatype && *spec.datatype != output.datatype) {
    fail(ErrorCode::kFailedPrecondition, "output '", spec.name, "' is of type ", name_of(output.datatype),
         ", but config.pbtxt says ", name_of(*spec.datatype));
  }
  if (spec.reshape && spec.shape) reshape(output, *spec.reshape, *spec.shape);
}

void ConfiguredOutputs::apply(std::vector<InferTensor>& outputs) const {
  bool is_in_order = outputs.size() == bindings_.size();
  for (size_t i = 0; is_in_order && i < outputs.size(); ++i) is_in_order = outputs[i].name == bindings_[i].own_name;
  if (is_in_order) {
    for (size_t i = 0; i < outputs.size(); ++i) finish(outputs[i], specs_[i]);
  } else if (selects_) {
    std::vector<InferTensor> selected;
    for (size_t i = 0; i < bindings_.size(); ++i) {
      selected.push_back(take(outputs, bindings_[i], specs_[i].name));
      finish(selected.back(), specs_[i]);
    }
    outputs = std::move(selected);
  } else {
    // Outputs that the result type does not determine, or that are None, may be missing.
    for (InferTensor& output : outputs) {
      const auto binding = std::find_if(bindings_.begin(), bindings_.end(),
                                        [&](const Binding& candidate) { return candidate.own_name == output.name; });
      if (binding != bindings_.end()) finish(output, specs_[static_cast<size_t>(binding - bindings_.begin())]);
    }
  }
}

}  // namespace tensord::server
