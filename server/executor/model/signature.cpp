#include <absl/container/inlined_vector.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/base/nearest.h"
#include "server/executor/model/model.h"
#include "server/executor/model/unsigned_widening.h"

namespace tensord::server {
namespace {

std::string quoted_list(const std::vector<std::string>& names) {
  std::string out = "[";
  for (const std::string& name : names) out += concat(out.size() > 1 ? "," : "", "'", name, "'");
  return out + "]";
}

std::string plain_shape(std::span<const int64_t> shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i) out += concat(i ? "," : "", shape[i]);
  return out + "]";
}

[[noreturn]] void fail_count(const Signature& signature, const std::string& model, std::span<const InputHeader> headers,
                             std::span<const bool> present) {
  std::vector<std::string> got, missing;
  for (const InputHeader& header : headers) got.push_back(header.name);
  for (size_t i = 0; i < present.size(); ++i) {
    if (!present[i] && !signature.inputs[i].is_optional) missing.push_back(signature.inputs[i].name);
  }
  const auto needed = static_cast<size_t>(
      std::ranges::count_if(signature.inputs, [](const TensorSpec& spec) { return !spec.is_optional; }));
  const size_t max = signature.inputs.size();
  fail(ErrorCode::kInvalidArgument, "expected ",
       needed == max ? std::to_string(max) : concat("number of inputs between ", needed, " and ", max),
       needed == max ? " inputs" : "", " but got ", headers.size(), " inputs for model '", model, "'. Got input(s) ",
       quoted_list(got), ", but missing required input(s) ", quoted_list(missing),
       ". Please provide all required input(s).");
}

void check_shape(const TensorSpec& spec, const Signature& signature, const std::string& model,
                 const InputHeader& header) {
  for (const int64_t size : header.shape) {
    // The shape's string is made on failure only, because it takes longer than the check.
    if (size >= 0) continue;
    fail(ErrorCode::kInvalidArgument, "input '", header.name, "' for model '", model, "' has a negative size in shape ",
         plain_shape(header.shape));
  }
  if (!spec.shape) return;
  const Dims& expected = *spec.shape;
  bool matches = expected.size() == header.shape.size();
  for (size_t i = 0; matches && i < expected.size(); ++i) {
    matches = expected[i] == -1 || expected[i] == header.shape[i];
  }
  if (matches) return;
  fail(ErrorCode::kInvalidArgument, "unexpected shape for input '", header.name, "' for model '", model, "'. Expected ",
       plain_shape(expected), ", got ", plain_shape(header.shape),
       signature.max_batch_size > 0
           ? ". NOTE: Setting a non-zero max_batch_size in the model config requires a batch dimension to be "
             "prepended to each input shape."
           : "");
}

void check_batch(const Signature& signature, const std::string& model, std::span<const InputHeader> headers) {
  if (signature.max_batch_size <= 0 || headers.empty()) return;
  const InputHeader& first = headers.front();
  for (const InputHeader& header : headers) {
    check(!header.shape.empty() && header.shape[0] == first.shape[0], "input '", header.name,
          "' batch size does not match other inputs for '", model, "'");
  }
  check(first.shape[0] <= signature.max_batch_size,
        "inference request batch-size must be <= ", signature.max_batch_size, " for '", model, "'");
}

// Suggests what exists: "; did you mean 'a'? it has 'a', 'b'".
template <class Tensors>
std::string those_there_are(const Tensors& tensors, const std::string& wanted) {
  constexpr size_t kMaxNames = 20;
  std::vector<std::string> names;
  for (const auto& tensor : tensors) names.push_back(tensor.name);
  const std::string near = nearest(wanted, names);
  std::string text = near.empty() ? "" : "; did you mean '" + near + "'?";
  for (size_t i = 0; i < names.size(); ++i) {
    if (i == kMaxNames) return text + ", …";
    text += concat(i > 0 ? ", '" : near.empty() ? "; it has '" : " It has '", names[i], "'");
  }
  return text;
}

[[noreturn]] void fail_twice(const TensorSpec& spec, const std::string& first, const std::string& second) {
  check(first != second, "input '", first, "' already exists in request");
  fail(ErrorCode::kInvalidArgument, "input '", spec.name, "' is in the request twice, as '", first, "' and as '",
       second, "'");
}

}  // namespace

bool Signature::is_on_device() const {
  return !device.is_host() || std::ranges::any_of(instances, [](Device instance) { return !instance.is_host(); });
}

bool TensorSpec::answers_to(const std::string& wanted) const {
  return wanted == name || std::find(aliases.begin(), aliases.end(), wanted) != aliases.end();
}

std::vector<size_t> match_inputs(const Signature& signature, const std::string& model,
                                 std::span<const InputHeader> headers) {
  const auto& specs = signature.inputs;
  std::vector<size_t> indices;
  absl::InlinedVector<bool, 16> present(specs.size(), false);
  for (const InputHeader& header : headers) {
    const auto found =
        std::find_if(specs.begin(), specs.end(), [&](const TensorSpec& spec) { return spec.answers_to(header.name); });
    if (found == specs.end()) {
      if (headers.size() < specs.size()) fail_count(signature, model, headers, present);
      fail(ErrorCode::kInvalidArgument, "unexpected inference input '", header.name, "' for model '", model, "'",
           those_there_are(specs, header.name));
    }
    const auto index = static_cast<size_t>(found - specs.begin());
    if (present[index]) {
      const auto before = static_cast<size_t>(std::find(indices.begin(), indices.end(), index) - indices.begin());
      fail_twice(*found, headers[before].name, header.name);
    }
    present[index] = true;
    indices.push_back(index);
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!present[i] && !specs[i].is_optional) fail_count(signature, model, headers, present);
  }
  for (size_t i = 0; i < headers.size(); ++i) {
    const TensorSpec& spec = specs[indices[i]];
    const InputHeader& header = headers[i];
    const std::optional<DataType> datatype = parse_datatype(header.datatype);
    if (spec.datatype && datatype != spec.datatype) {
      fail(ErrorCode::kInvalidArgument, "inference input '", header.name, "' data-type is '", header.datatype,
           "', but model '", model, "' expects '", name_of(*spec.datatype), "'");
    }
    check(datatype.has_value(), "inference input '", header.name, "' has unknown data-type '", header.datatype, "'");
    check(spec.takes_bytes == (datatype == DataType::kBytes), "inference input '", header.name, "' data-type is '",
          header.datatype, "', but model '", model, "' expects ", spec.takes_bytes ? "'BYTES'" : "a tensor of numbers");
    check_shape(spec, signature, model, header);
  }
  check_batch(signature, model, headers);
  return indices;
}

void check_requested_outputs(const Signature& signature, const std::string& model, std::span<const std::string> names) {
  for (size_t i = 0; i < names.size(); ++i) {
    check(std::find(names.begin(), names.begin() + static_cast<ptrdiff_t>(i), names[i]) ==
              names.begin() + static_cast<ptrdiff_t>(i),
          "output '", names[i], "' already exists in request");
    if (!signature.outputs_are_complete) continue;
    const bool is_known = std::any_of(signature.outputs.begin(), signature.outputs.end(),
                                      [&](const TensorSpec& spec) { return spec.answers_to(names[i]); });
    if (is_known) continue;
    fail(ErrorCode::kInvalidArgument, "unexpected inference output '", names[i], "' for model '", model, "'",
         those_there_are(signature.outputs, names[i]));
  }
}

std::vector<InferTensor> select_outputs(std::vector<InferTensor> outputs, const Signature& signature,
                                        const std::string& model, std::span<const std::string> names) {
  if (names.empty()) return outputs;
  std::vector<InferTensor> selected;
  for (const std::string& name : names) {
    const auto spec = std::find_if(signature.outputs.begin(), signature.outputs.end(),
                                   [&](const TensorSpec& candidate) { return candidate.answers_to(name); });
    const std::string& actual = spec == signature.outputs.end() ? name : spec->name;
    const auto found =
        std::find_if(outputs.begin(), outputs.end(), [&](const InferTensor& output) { return output.name == actual; });
    if (found == outputs.end()) {
      fail(ErrorCode::kInvalidArgument, "unexpected inference output '", name, "' for model '", model, "'",
           those_there_are(outputs, name));
    }
    selected.push_back(*found);
    selected.back().name = name;
  }
  return selected;
}

}  // namespace tensord::server
