// The operators' cases (tests/ops) with every tensor on a device whose memory the host cannot access and whose work
// runs late: results, mutated arguments, in-place and out= variants, and gradients. The device is the tests' own, or,
// with TENSORD_TEST_DEVICE=cuda, the first one of CUDA (scripts/cuda-test).
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/autograd/engine.h"
#include "core/autograd/variable.h"
#include "core/ops/generator.h"
#include "core/tensor/complex.h"
#include "tests/device/async_device.h"
#include "tests/device/async_kernels.h"
#include "tests/ops/op_cases.h"

namespace tensord::device_op_cases_test {
namespace {

using namespace op_cases;

bool is_cuda() {
  const char* const name = std::getenv("TENSORD_TEST_DEVICE");
  return name && std::string_view(name) == "cuda";
}
const Device kFirst = is_cuda() ? Device{kCUDA, 0} : late::kFirst;

[[maybe_unused]] const bool is_installed = (late::install(), late::install_kernels(), true);

// Copies the value with its tensors to `device`, even those already there.
Value moved(const Value& value, Device device) {
  if (value.is_tensor()) {
    const Tensor& tensor = value.to_tensor();
    const Tensor out = Tensor::empty_strided(tensor.sizes(), tensor.strides(), tensor.dtype(), device);
    out.copy_from(tensor);
    return out;
  }
  if (value.is_list()) {
    ops::List out = ops::make_list(value.to_list()->element);
    for (const Value& item : value.to_list()->items) out->items.push_back(moved(item, device));
    return out;
  }
  if (!value.is_dict()) return value;
  auto out = make_intrusive<ops::DictObject>(value.to_dict()->key, value.to_dict()->value);
  for (const auto& [key, item] : value.to_dict()->items()) out->set(key, moved(item, device));
  return ops::Dict(out);
}
std::vector<Value> all_moved(const std::vector<Value>& values, Device device) {
  std::vector<Value> out;
  for (const Value& value : values) out.push_back(moved(value, device));
  return out;
}

bool has_tensor(const Value& value, bool (*is)(DType)) {
  if (value.is_tensor()) return value.to_tensor().defined() && is(value.to_tensor().dtype());
  if (!value.is_list()) return false;
  const auto& all = value.to_list()->items;
  return std::any_of(all.begin(), all.end(), [&](const Value& item) { return has_tensor(item, is); });
}
bool has_tensor(const std::vector<Value>& values, bool (*is)(DType)) {
  return std::any_of(values.begin(), values.end(), [&](const Value& value) { return has_tensor(value, is); });
}

// Copies back to the host after all work. Scalars of scripts may be host tensors.
Value brought_back(const Value& value, bool may_lie_on_host) {
  if (value.is_tensor() && value.to_tensor().defined()) {
    if (!may_lie_on_host && value.to_tensor().device().is_host())
      fail(ErrorCode::kInternal, "a result lies on the host");
    return value.to_tensor().to(Device{});
  }
  if (value.is_list()) {
    ops::List list = ops::make_list(value.to_list()->element);
    for (const Value& item : value.to_list()->items) list->items.push_back(brought_back(item, may_lie_on_host));
    return list;
  }
  if (value.is_tuple()) {
    std::vector<Value> items;
    for (const Value& item : value.to_tuple()->items) items.push_back(brought_back(item, may_lie_on_host));
    return ops::make_tuple(std::move(items));
  }
  if (!value.is_dict()) return value;
  auto out = make_intrusive<ops::DictObject>(value.to_dict()->key, value.to_dict()->value);
  for (const auto& [key, item] : value.to_dict()->items())
    out->set(brought_back(key, true), brought_back(item, may_lie_on_host));
  return ops::Dict(out);
}
std::vector<Value> all_brought_back(const std::vector<Value>& values, bool may_lie_on_host) {
  std::vector<Value> out;
  for (const Value& value : values) out.push_back(brought_back(value, may_lie_on_host));
  return out;
}

std::string compare_shapes(const std::vector<Value>& got, const std::vector<Value>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (!expected[i].is_tensor()) continue;
    const Tensor &a = got[i].to_tensor(), &b = expected[i].to_tensor();
    if (a.sizes() != b.sizes() || a.dtype() != b.dtype())
      return concat("got ", describe(a), ", expected ", describe(b));
  }
  return "";
}

// Operators whose result depends on the device.
bool is_about_devices(const ops::Op& op) {
  static const std::set<std::string> names{"aten::cpu",        "aten::to.device", "aten::to.prim_Device",
                                           "aten::get_device", "prim::device",    "prim::is_cpu",
                                           "prim::is_cuda"};
  return names.contains(op.schema.full_name());
}

// Operators that PyTorch has results of on the host: counts of packed rows, and what is made without a device.
bool has_host_results(const ops::Op& op) {
  static const std::set<std::string> names{"aten::_pack_padded_sequence",  "aten::_pad_packed_sequence",
                                           "aten::linspace.Tensor_Tensor", "aten::linspace.Tensor_Scalar",
                                           "aten::linspace.Scalar_Tensor", "aten::logspace.Tensor_Tensor",
                                           "aten::logspace.Tensor_Scalar", "aten::logspace.Scalar_Tensor"};
  return op.kind == ops::OpKind::kScript || is_about_devices(op) || names.contains(op.schema.full_name());
}

Tolerance tolerance_of(const Value& record) {
  return {field(record, "rtol").to_float(), field(record, "atol").to_float()};
}

// Of topk, which of equal values are chosen differs between devices: the values at the chosen places are compared.
std::vector<Value> with_chosen_values(const Value& record, const ops::Op& op, std::vector<Value> results) {
  if (op.schema.full_name() != "aten::topk" || results[1].to_tensor().numel() == 0) return results;
  const std::vector<Value> bound = ops::bind(op, copy_all(items(field(record, "args"))));
  results[1] = ops::call_by_name("aten::gather", bound[0], bound[2], results[1]);
  return results;
}

// What a device draws from a generator of its own.
bool is_drawn(const Value& record) {
  const std::string& how = field(record, "check").to_string();
  return how == "shape" || how == "drawn";
}

std::string run_case(const Value& record, const ops::Op& op) {
  const std::string& expected_error = field(record, "error").to_string();
  std::vector<Value> bound, results;
  try {
    bound = ops::bind(op, all_moved(items(field(record, "args")), kFirst));
    results = ops::run(op, bound);
    synchronize(kFirst);
  } catch (const Error& error) {
    if (!expected_error.empty() && std::string_view(error.what()).find(expected_error) != std::string_view::npos)
      return "";
    return concat("failed: ", error.what());
  }
  if (!expected_error.empty()) return "must fail but did not";
  const Tolerance tolerance = tolerance_of(record);
  results = all_brought_back(results, has_host_results(op));
  const std::vector<Value>& expected = items(field(record, "results"));
  const std::string& how = field(record, "check").to_string();
  if (is_about_devices(op) && !results[0].is_tensor()) return "";
  if (is_drawn(record)) return compare_shapes(results, expected);
  std::string different = compare_items(with_chosen_values(record, op, comparable(how, results)),
                                        with_chosen_values(record, op, expected), tolerance);
  if (!different.empty()) return different;
  for (const Value& one : items(field(record, "mutated"))) {
    const auto index = static_cast<size_t>(items(one)[0].to_int());
    if (std::string problem = compare(brought_back(bound[index], true), items(one)[1], tolerance); !problem.empty()) {
      return concat("argument ", index, " after the call: ", problem);
    }
  }
  return "";
}

const std::vector<const ops::Op*>& forms_of(const ops::Op& op) {
  static const auto* const forms = [] {
    auto* const out = new std::map<const ops::Op*, std::vector<const ops::Op*>>;
    for (const ops::Op* form : ops::all_ops()) {
      if (form->base) (*out)[form->base].push_back(form);
    }
    return out;
  }();
  static const std::vector<const ops::Op*> none;
  const auto found = forms->find(&op);
  return found == forms->end() ? none : found->second;
}

// The in-place and out= variants, compared with the functional one on the host.
std::string run_derived(const Value& record, const ops::Op& op) {
  const std::vector<Value>& arguments = items(field(record, "args"));
  if (!field(record, "error").to_string().empty() || op.is_random || op.base) return "";
  const std::vector<Value> expected = ops::run(op, ops::bind(op, copy_all(arguments)));
  if (expected.size() != 1 || !expected[0].is_tensor()) return "";
  const Tensor& wanted = expected[0].to_tensor();
  for (const ops::Op* form : forms_of(op)) {
    std::vector<Value> own = ops::bind(op, all_moved(arguments, kFirst));
    Tensor target;
    if (form->schema.name != op.schema.name) {
      target = own[0].to_tensor();
      const bool is_spread = !is_non_overlapping_and_dense(target.sizes(), target.strides());
      if (is_spread || target.sizes() != wanted.sizes() || target.dtype() != wanted.dtype()) continue;
    } else {
      target = Tensor::empty(Dims{0}, wanted.dtype(), kFirst);
      own.push_back(target);
    }
    ops::run(*form, own);
    if (std::string problem = compare(target.to(Device{}), expected[0], tolerance_of(record)); !problem.empty()) {
      return concat(form->schema.full_name(), ": ", problem);
    }
  }
  return "";
}

bool is_continuous(DType dtype) { return is_floating(dtype) || is_complex(dtype); }

// On the host; different for real and imaginary parts.
Tensor weights_like(const Tensor& root) {
  const Tensor weights = Tensor::empty(root.sizes(), is_complex(root.dtype()) ? DType::kComplex128 : DType::kFloat64);
  const Tensor numbers = is_complex(root.dtype()) ? as_real_pairs(weights) : weights;
  for (int64_t i = 0; i < numbers.numel(); ++i) numbers.data<double>()[i] = static_cast<double>(i % 7) - 2.5;
  return weights.to(root.dtype());
}

// Gradients of sum(result · weights) for every floating or complex argument, on one device.
std::vector<Value> gradients_on(const ops::Op& op, const std::vector<Value>& arguments, Device device) {
  ops::Generator generator(7);  // layers may drop elements
  const ops::GeneratorGuard guard(generator);
  std::vector<Value> own = ops::bind(op, all_moved(arguments, device));
  std::vector<Tensor> leaves, roots, grads;
  for (const Value& value : own) {
    if (!value.is_tensor() || !value.to_tensor().defined() || !is_continuous(value.to_tensor().dtype())) continue;
    autograd::set_requires_grad(value.to_tensor());
    leaves.push_back(value.to_tensor());
  }
  for (const Value& result : ops::run(op, own)) {
    if (!result.is_tensor() || !autograd::requires_grad(result.to_tensor())) continue;
    const Tensor& root = result.to_tensor();
    roots.push_back(root);
    grads.push_back(weights_like(root).to(device));
  }
  std::vector<Value> out;
  if (roots.empty()) return out;
  for (const Tensor& gradient : autograd::grad(roots, leaves, grads, {}, /*allow_unused=*/true)) {
    out.push_back(gradient.defined() ? Value(gradient.to(Device{})) : Value());
  }
  return out;
}

std::string check_gradients(const Value& record, const ops::Op& op) {
  if (op.is_random || op.base || is_about_devices(op) || !field(record, "error").to_string().empty()) return "";
  const std::vector<Value>& arguments = items(field(record, "args"));
  if (is_cuda() && is_drawn(record)) return "";  // layers may drop elements
  // The signs of vectors differ between libraries; CudaFactors has gradients that do not depend on them.
  const std::string& how = field(record, "check").to_string();
  if (is_cuda() && (how.starts_with("svd") || how == "eigh")) return "";
  std::vector<Value> expected;
  try {
    expected = gradients_on(op, arguments, {});
  } catch (const Error&) {
    return "";  // it has none; op_gradients_test requires those that must exist
  }
  return compare_items(gradients_on(op, arguments, kFirst), expected, tolerance_of(record));
}

// The covered operators, and the first failure of each.
class Findings {
 public:
  void note(const std::string& key, const std::string& label, const std::string& problem) {
    met_.insert(key);
    if (!problem.empty()) failed_.emplace(key, concat(label, ": ", problem));
  }
  std::string report() const {
    std::string out;
    for (const auto& [key, problem] : failed_) out += concat("\n  ", key, "  (", problem, ")");
    return out;
  }
  size_t operators() const { return met_.size(); }

 private:
  std::set<std::string> met_;
  std::map<std::string, std::string> failed_;
};

// "3/8": every eighth record from the fourth on.
std::pair<size_t, size_t> share_of_cases() {
  const char* const text = std::getenv("TENSORD_OP_CASES_SHARE");
  size_t part = 0, parts = 1;
  if (text && std::sscanf(text, "%zu/%zu", &part, &parts) != 2)
    fail(ErrorCode::kInvalidArgument, "a share of cases: ", text);
  return {part, std::max<size_t>(parts, 1)};
}

// Says of each record which one runs, for those that end the process.
void name_record(const std::string& name, const Value& record) {
  static const bool is_asked_for = std::getenv("TENSORD_OP_CASES_VERBOSE") != nullptr;
  if (is_asked_for) std::fprintf(stderr, "%s  %s\n", name.c_str(), field(record, "label").to_string().c_str());
}

using CheckCase = std::string (*)(const Value& record, const ops::Op& op);

void run_all(Findings& findings, std::initializer_list<CheckCase> checks) {
  ASSERT_FALSE(case_files().empty()) << "set TENSORD_OP_CASES to the folder that make_op_cases wrote";
  std::optional<late::HostTouches> touches;
  if (!is_cuda()) touches.emplace();
  const auto [part, parts] = share_of_cases();
  const char* const only = std::getenv("TENSORD_OP_CASES_ONLY");
  size_t index = 0;
  for (const auto& file : case_files()) {
    const Value records = jit::load_torch_file(file.string());
    for (const Value& record : items(records)) {
      const ops::Op* op = ops::find_op(field(record, "op").to_string());
      const std::vector<Value>& arguments = items(field(record, "args"));
      if (!op || !has_tensor(arguments, [](DType) { return true; })) continue;
      if (index++ % parts != part || (only && op->schema.full_name() != only)) continue;
      name_record(op->schema.full_name(), record);
      const GradModeGuard restores_mode(execution_context().grad_mode);
      std::string problem;
      for (const CheckCase check : checks) {
        try {
          problem = check(record, *op);
          synchronize(kFirst);
        } catch (const Error& error) {
          problem = error.what();
        }
        if (touches && touches->take() > 0) problem = "the host touches the device's memory";
        if (!problem.empty()) break;
      }
      try {
        synchronize(kFirst);
      } catch (const Error&) {
        // The message of an already failed case.
      }
      const std::string key = op->schema.full_name() + (has_tensor(arguments, is_complex) ? " complex" : "");
      findings.note(key, field(record, "label").to_string(), problem);
    }
  }
}

TEST(DeviceOpCases, EqualPyTorch) {
  Findings findings;
  run_all(findings, {run_case, run_derived});
  EXPECT_EQ(findings.report(), "");
  std::printf("%zu operators\n", findings.operators());
  // scripts/gpu runs families one by one.
  if (case_files().size() > 1) {
    EXPECT_GT(findings.operators(), 300u);
  }
}

TEST(DeviceOpCases, GradientsEqualTheProcessors) {
  Findings findings;
  run_all(findings, {check_gradients});
  EXPECT_EQ(findings.report(), "");
  std::printf("%zu operators\n", findings.operators());
  if (case_files().size() > 1) {
    EXPECT_GT(findings.operators(), 300u);
  }
}

}  // namespace
}  // namespace tensord::device_op_cases_test
