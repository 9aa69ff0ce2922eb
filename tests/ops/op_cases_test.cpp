// Replays the cases that tests/ops/make_op_cases.py wrote, against the registry:
//  - results and written arguments equal PyTorch's,
//  - infer on meta tensors gives the same shapes and dtypes,
//  - in-place and out= forms give what the functional form gives,
//  - every registered operator has a case.

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/ops/op_cases.h"

namespace tensord {
namespace {

using namespace op_cases;

// Shapes and dtypes from infer must be those of the results.
std::string check_infer(const ops::Op& op, const std::vector<Value>& arguments, const std::vector<Value>& results) {
  if (op.has_dynamic_shape || op.schema.is_vararg || !op.is_pure || op.is_random) return "";
  const bool may_read = op.direct && !op.is_view;  // elements, without which it must fail, and not crash
  std::vector<Value> shapes;
  try {
    shapes = ops::infer(op, ops::bind(op, copy_all(arguments, true)));
  } catch (const Error&) {
    if (!may_read) throw;
    return "";
  }
  for (size_t i = 0; i < shapes.size() && i < results.size(); ++i) {
    if (!shapes[i].is_tensor() || !results[i].is_tensor()) continue;
    const Tensor &meta = shapes[i].to_tensor(), &real = results[i].to_tensor();
    if (meta.sizes() != real.sizes() || meta.dtype() != real.dtype()) {
      return concat("infer gives ", describe(meta), ", the result is ", describe(real));
    }
  }
  return "";
}

// The in-place and out= forms registered beside a functional operator.
std::string check_derived(const ops::Op& op, const std::vector<Value>& arguments, const Value& result,
                          Tolerance tolerance) {
  if (op.base || !result.is_tensor()) return "";
  for (const ops::Op* form : ops::all_ops()) {
    if (form->base != &op) continue;
    std::vector<Value> own = ops::bind(op, copy_all(arguments));
    const bool is_inplace = form->schema.name != op.schema.name;
    Value target;
    if (is_inplace) {
      const Tensor& self = own[0].to_tensor();
      if (self.sizes() != result.to_tensor().sizes() || self.dtype() != result.to_tensor().dtype()) continue;
      target = own[0];
    } else {
      target = Tensor::empty(Dims{0}, result.to_tensor().dtype());
      own.push_back(target);
    }
    ops::run(*form, own);
    if (const std::string problem = compare(target, result, tolerance); !problem.empty()) {
      return concat(form->schema.full_name(), ": ", problem);
    }
  }
  return "";
}

std::string run_record(const Value& record) {
  const std::string& name = field(record, "op").to_string();
  const ops::Op* op = ops::find_op(name);
  if (!op) return field(record, "optional").to_bool() ? "" : "not registered";
  const std::vector<Value>& arguments = items(field(record, "args"));
  const std::string& expected_error = field(record, "error").to_string();
  std::vector<Value> bound, results;
  try {
    bound = ops::bind(*op, copy_all(arguments));
    results = ops::run(*op, bound);
  } catch (const Error& error) {
    if (expected_error.empty()) return concat("failed: ", error.what());
    const bool matches = std::string_view(error.what()).find(expected_error) != std::string_view::npos;
    return matches ? "" : concat("fails with \"", error.what(), "\", expected \"", expected_error, "\"");
  }
  if (!expected_error.empty()) return "must fail but did not";
  const Tolerance tolerance{field(record, "rtol").to_float(), field(record, "atol").to_float()};
  const std::vector<Value>& expected = items(field(record, "results"));
  if (field(record, "check").to_string() == "shape") {
    if (results.size() != expected.size())
      return concat("got ", results.size(), " results, expected ", expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      if (results[i].tag() != expected[i].tag()) return concat("result ", i, " is a ", results[i].tag_name());
      if (!expected[i].is_tensor()) continue;
      const Tensor &got = results[i].to_tensor(), &wanted = expected[i].to_tensor();
      if (got.sizes() != wanted.sizes() || got.dtype() != wanted.dtype()) {
        return concat("got ", describe(got), ", expected ", describe(wanted));
      }
    }
    return "";
  }
  if (std::string problem = compare_items(results, expected, tolerance); !problem.empty()) return problem;
  for (const Value& mutated : items(field(record, "mutated"))) {
    const auto index = static_cast<size_t>(items(mutated)[0].to_int());
    if (std::string problem = compare(bound[index], items(mutated)[1], tolerance); !problem.empty()) {
      return concat("argument ", index, " after the call: ", problem);
    }
  }
  if (std::string problem = check_infer(*op, arguments, results); !problem.empty()) return problem;
  return expected.empty() ? "" : check_derived(*op, arguments, results.front(), tolerance);
}

TEST(OpCases, EqualPyTorch) {
  const auto files = case_files();
  ASSERT_FALSE(files.empty()) << "set TENSORD_OP_CASES to the folder that make_op_cases wrote";
  size_t count = 0;
  for (const auto& file : files) {
    const Value records = jit::load_torch_file(file.string());
    for (const Value& record : items(records)) {
      ++count;
      std::string problem;
      const GradModeGuard restores_mode(current_grad_mode);  // rows may change it
      try {
        problem = run_record(record);
      } catch (const Error& error) {
        problem = error.what();
      }
      EXPECT_EQ(problem, "") << field(record, "label").to_string() << " in " << file.filename();
    }
  }
  EXPECT_GT(count, 100u);
}

TEST(OpCases, EveryOperatorHasARow) {
  std::set<std::string> covered;
  for (const auto& file : case_files()) {
    const Value records = jit::load_torch_file(file.string());
    for (const Value& record : items(records)) covered.insert(field(record, "op").to_string());
  }
  std::string missing;
  for (const ops::Op* op : ops::all_ops()) {
    // Derived forms run with their functional form's rows; tensord:: operators have no
    // counterpart in PyTorch and are compared with the unpacked ones in prepack_test.
    if (op->base || op->schema.name.starts_with("tensord::") || op->schema.name.starts_with("test::")) continue;
    // torch.save cannot write the enums of scripts; see tests/kernels/enum_test.cpp.
    if (op->schema.name.starts_with("prim::Enum") || op->schema.overload == "enum") continue;
    if (!covered.contains(op->schema.full_name())) missing += " " + op->schema.full_name();
  }
  EXPECT_EQ(missing, "");
}

}  // namespace
}  // namespace tensord
