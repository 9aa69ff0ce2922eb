// Replays the cases that tests/ops/make_op_cases.py wrote, against the registry:
//  - results and written arguments equal PyTorch's,
//  - infer on meta tensors gives the same shapes and dtypes,
//  - in-place and out= forms give what the functional form gives,
//  - prepared calls give it too, whichever tensor is a constant and however the memory lies,
//  - and so does each sample of a batch by itself, where the operator says that it keeps them apart,
//  - every registered operator has a case.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/ops/generator.h"
#include "core/tensor/lend.h"
#include "tests/ops/op_cases.h"
#include "tests/ops/prepared_cases.h"
#include "tests/ops/sample_cases.h"
#include "tests/support/places.h"

namespace tensord::op_cases_test {
namespace {

using namespace op_cases;

// Shapes and dtypes from infer must be those of the results.
std::string check_infer(const ops::Op& op, const std::vector<Value>& arguments, const std::vector<Value>& results) {
  if (op.has_dynamic_shape || op.schema.is_vararg || !op.is_pure) return "";
  const bool may_read = !op.infer && !op.base && !op.is_view;  // elements, without which it must fail, and not crash
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

// Whether an operator goes through with one argument in read-only memory. Without elements there is nothing to write.
bool writes_read_only(const ops::Op& op, std::vector<Value> arguments, size_t index) {
  const Tensor tensor = arguments[index].to_tensor();
  if (tensor.numel() == 0) return false;
  arguments[index] = read_only(tensor);
  try {
    ops::run(op, arguments);
  } catch (const Error& error) {
    return std::string_view(error.what()).find("read-only") == std::string_view::npos;
  }
  return true;
}

// What is wrong when an operator writes to memory that was lent: who lent it sees nothing of it.
std::string check_lent(const ops::Op& op, std::vector<Value> arguments, size_t index) {
  const Tensor tensor = arguments[index].to_tensor();
  const Tensor before = tensor.clone(true);
  const Tensor lent = lend(tensor);
  arguments[index] = lent;
  ops::run(op, arguments);
  if (!compare(tensor, before, {}).empty()) return "writes memory that was lent";
  arguments[index] = tensor;
  ops::run(op, arguments);
  return op.is_random ? "" : compare(lent, tensor, {});
}

// Whether the first argument is expanded, so that nothing may be written into it.
bool has_repeated_elements(const std::vector<Value>& arguments) {
  if (arguments.empty() || !arguments[0].is_tensor()) return false;
  const Tensor& self = arguments[0].to_tensor();
  for (int64_t i = 0; i < self.ndim(); ++i) {
    if (self.sizes()[i] > 1 && self.strides()[i] == 0) return true;
  }
  return false;
}

// The in-place and out= forms registered beside a functional operator.
std::string check_derived(const ops::Op& op, const std::vector<Value>& arguments, const Value& result,
                          Tolerance tolerance) {
  if (op.base || !result.is_tensor() || has_repeated_elements(arguments)) return "";
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
    const uint32_t version = target.to_tensor().version();
    ops::run(*form, own);
    if (target.to_tensor().version() == version) return concat(form->schema.full_name(), ": the version stays");
    const size_t index = is_inplace ? 0 : own.size() - 1;
    static std::set<const ops::Op*> tried;
    if (tried.insert(form).second && writes_read_only(*form, copy_all(own), index)) {
      return concat(form->schema.full_name(), ": writes read-only memory");
    }
    if (const std::string problem = check_lent(*form, copy_all(own), index); !problem.empty()) {
      return concat(form->schema.full_name(), ", to memory that was lent: ", problem);
    }
    if (const std::string problem = compare(target, result, tolerance); !problem.empty()) {
      return concat(form->schema.full_name(), ": ", problem);
    }
  }
  return "";
}

// A result in an argument's memory must have its alias mark: passes drop and move writes by what the schema says.
std::string check_aliases(const ops::Op& op, const std::vector<Value>& bound, const std::vector<Value>& results) {
  for (size_t i = 0; i < results.size() && i < op.schema.returns.size(); ++i) {
    std::vector<Tensor> given, taken;
    collect_tensors(results[i], given);
    for (size_t j = 0; j < bound.size() && j < op.schema.arguments.size(); ++j) {
      const char mark = op.schema.arguments[j].alias.set;
      if (mark != 0 && mark == op.schema.returns[i].alias.set) continue;
      if (results[i].is_list() && bound[j].is_list()) continue;  // of tensors in lists the passes know
      taken.clear();
      collect_tensors(bound[j], taken);
      for (const Tensor& result : given) {
        for (const Tensor& argument : taken) {
          const bool shares = result.defined() && argument.defined() && !result.is_meta() && result.numel() > 0 &&
                              result.storage() == argument.storage();
          if (shares) return concat("result ", i, " lies in argument ", j, " without an alias mark");
        }
      }
    }
  }
  return "";
}

// Of a tensor, or of each one in a list.
std::vector<uint32_t> versions_of(const Value& value) {
  std::vector<uint32_t> versions;
  if (value.is_tensor()) versions.push_back(value.to_tensor().version());
  if (!value.is_list()) return versions;
  for (const Value& item : value.to_list()->items) {
    if (item.is_tensor()) versions.push_back(item.to_tensor().version());
  }
  return versions;
}

// What PyTorch counts as a write is one here: autograd must know of it, and read-only memory (a request's) refuse it.
std::string check_written(const ops::Op& op, const std::vector<Value>& arguments, const std::vector<Value>& bound,
                          const std::vector<std::vector<uint32_t>>& before, const std::vector<Value>& mutated) {
  for (const Value& one : mutated) {
    const auto index = static_cast<size_t>(items(one)[0].to_int());
    const bool is_counted = items(one)[2].to_bool();
    if (!is_counted) continue;
    const std::vector<uint32_t> after = versions_of(bound[index]);
    for (size_t i = 0; i < after.size(); ++i) {
      if (after[i] == before[index][i]) {
        return concat("argument ", index, " is written, but has the same version (tensor ", i, ")");
      }
    }
    if (!bound[index].is_tensor()) continue;
    if (writes_read_only(op, ops::bind(op, copy_all(arguments)), index)) {
      return concat("argument ", index, " is written where its memory is read-only");
    }
    if (const std::string problem = check_lent(op, ops::bind(op, copy_all(arguments)), index); !problem.empty()) {
      return concat("argument ", index, ", in memory that was lent: ", problem);
    }
  }
  return "";
}

// As DRAWN_SEED of make_op_cases.py.
void seed_all() {
  ops::Generator& generator = ops::default_generator();
  const auto lock = generator.lock();
  generator.set_seed(4711);
}

std::string run_record(const Value& record) {
  const std::string& name = field(record, "op").to_string();
  const ops::Op* op = ops::find_op(name);
  if (!op) return field(record, "optional").to_bool() ? "" : "not registered";
  const std::vector<Value>& arguments = items(field(record, "args"));
  const std::string& expected_error = field(record, "error").to_string();
  std::vector<Value> bound, results;
  std::vector<std::vector<uint32_t>> versions;
  const std::string& kind = field(record, "check").to_string();
  if (kind == "drawn") seed_all();
  try {
    bound = ops::bind(*op, copy_all(arguments));
    for (const Value& argument : bound) versions.push_back(versions_of(argument));
    results = ops::run(*op, bound);
  } catch (const Error& error) {
    if (expected_error.empty()) return concat("failed: ", error.what());
    const bool matches = std::string_view(error.what()).find(expected_error) != std::string_view::npos;
    return matches ? "" : concat("fails with \"", error.what(), "\", expected \"", expected_error, "\"");
  }
  if (!expected_error.empty()) return "must fail but did not";
  if (std::string problem = check_aliases(*op, bound, results); !problem.empty()) return problem;
  const std::vector<Value>& mutated = items(field(record, "mutated"));
  if (std::string problem = check_written(*op, arguments, bound, versions, mutated); !problem.empty()) return problem;
  const Tolerance tolerance{field(record, "rtol").to_float(), field(record, "atol").to_float()};
  const std::vector<Value>& expected = items(field(record, "results"));
  if (kind == "drawn") {
    std::string problem = compare_items(results, expected, tolerance);
    for (size_t i = 0; i < mutated.size() && problem.empty(); ++i)
      problem = compare(bound[static_cast<size_t>(items(mutated[i])[0].to_int())], items(mutated[i])[1], tolerance);
    return problem;
  }
  if (kind == "shape") {
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
  const std::vector<Value> compared = comparable(kind, results);
  if (std::string problem = compare_items(compared, expected, tolerance); !problem.empty()) return problem;
  for (const Value& one : mutated) {
    const auto index = static_cast<size_t>(items(one)[0].to_int());
    if (std::string problem = compare(bound[index], items(one)[1], tolerance); !problem.empty()) {
      return concat("argument ", index, " after the call: ", problem);
    }
  }
  if (std::string problem = check_infer(*op, arguments, results); !problem.empty()) return problem;
  if (compared.size() != results.size()) return "";
  if (std::string problem = check_prepared(*op, arguments, results, tolerance); !problem.empty()) return problem;
  if (std::string problem = check_rank(*op, arguments, results); !problem.empty()) return problem;
  if (std::string problem = check_samples(*op, arguments, results, tolerance); !problem.empty()) return problem;
  return expected.empty() ? "" : check_derived(*op, arguments, results.front(), tolerance);
}

// What is known to differ between PyTorch and us: lines of "refused OPERATOR WHAT" (PyTorch answers), "answered
// OPERATOR WHAT" (PyTorch refuses) and "differs OPERATOR WHAT", where WHAT is a dtype, "mixed" (dtypes) or "shapes",
// and OPERATOR may be "*".
class KnownDifferences {
 public:
  explicit KnownDifferences(const std::filesystem::path& path) {
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
      if (!line.empty() && line[0] != '#') lines_.insert(line);
    }
  }
  bool has(const char* kind, const Value& record) {
    const std::string what = " " + field(record, "what").to_string();
    const std::string line = concat(kind, " ", field(record, "op").to_string(), what), any = concat(kind, " *", what);
    const std::string& found = lines_.contains(line) ? line : any;
    if (lines_.contains(found)) met_.insert(found);
    return lines_.contains(found);
  }
  void expect(const char* kind, const Value& record) {
    if (!has(kind, record)) {
      const std::string line =
          concat(kind, " ", field(record, "op").to_string(), " ", field(record, "what").to_string());
      unknown_.emplace(line, field(record, "label").to_string());
    }
  }
  // Lines that must be added, and ones that nothing needs any more.
  std::string report() const {
    std::string out;
    for (const auto& [line, label] : unknown_) out += concat("\n  new: ", line, "  (", label, ")");
    for (const std::string& line : lines_) {
      if (!met_.contains(line)) out += "\n  gone: " + line;
    }
    return out;
  }

 private:
  std::set<std::string> lines_, met_;
  std::map<std::string, std::string> unknown_;  // with the first record's label
};

// A derived record: numbers must be PyTorch's where both answer.
std::string run_variant(const Value& record, KnownDifferences& known) {
  const ops::Op* op = ops::find_op(field(record, "op").to_string());
  if (!op) return "";
  std::vector<Value> bound;
  try {
    bound = ops::bind(*op, copy_all(items(field(record, "args"))));
    ops::run(*op, bound);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInternal) return concat("fails with an internal error: ", error.what());
    if (field(record, "refused").to_string().empty()) known.expect("refused", record);
    return "";
  }
  if (!field(record, "refused").to_string().empty()) {
    known.expect("answered", record);
    return "";
  }
  const std::string problem = run_record(record);
  return !problem.empty() && known.has("differs", record) ? "" : problem;
}

// Of every record check(record) must be "". Gives back how many there were.
template <class Check>
size_t check_records(const Check& check) {
  size_t count = 0;
  for (const auto& file : case_files()) {
    const Value records = jit::load_torch_file(file.string());
    for (const Value& record : items(records)) {
      ++count;
      std::string problem;
      const GradModeGuard restores_mode(execution_context().grad_mode);  // rows may change it
      try {
        problem = check(record);
      } catch (const Error& error) {
        problem = error.what();
      }
      EXPECT_EQ(problem, "") << field(record, "label").to_string() << " in " << file.filename();
    }
  }
  return count;
}

// TENSORD_OP_VARIANTS is "all", or "part" when the files have a share of the variants only.
TEST(OpVariants, EqualPyTorch) {
  const char* which = std::getenv("TENSORD_OP_VARIANTS");
  if (case_files().empty() || !which) GTEST_SKIP() << "see tests/ops/README.md";
  KnownDifferences known(std::string(tests_folder()) + "/ops/known_differences.txt");
  EXPECT_GT(check_records([&](const Value& record) { return run_variant(record, known); }), 1000u);
  // What is taken and what is not is asked for by hand, since it changes with every new operator; values always.
  const bool is_complete = std::string_view(which) == "all";
  EXPECT_EQ(is_complete ? known.report() : "", "");
}

TEST(OpCases, EqualPyTorch) {
  ASSERT_FALSE(case_files().empty()) << "set TENSORD_OP_CASES to the folder that make_op_cases wrote";
  EXPECT_GE(check_records(run_record), 5 * case_files().size());
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
    // Nor quantized tensors; see tests/quantized.
    static const std::set<std::string> quantized{"aten::quantize_per_tensor",
                                                 "aten::quantize_per_channel",
                                                 "aten::dequantize",
                                                 "aten::q_scale",
                                                 "aten::q_zero_point",
                                                 "aten::int_repr",
                                                 "aten::qscheme",
                                                 "aten::q_per_channel_scales",
                                                 "aten::q_per_channel_zero_points",
                                                 "aten::q_per_channel_axis",
                                                 "aten::quantized_lstm",
                                                 "aten::quantized_gru"};
    // Marks for a profiler; see tests/language.
    if (op->schema.name.starts_with("profiler::")) continue;
    // Nor does a row hold sparse tensors; see tests/sparse.
    static const std::set<std::string> sparse{
        "aten::coalesce",  "aten::_coalesce",    "aten::is_coalesced", "aten::indices",      "aten::_indices",
        "aten::values",    "aten::_values",      "aten::_nnz",         "aten::_dimI",        "aten::_dimV",
        "aten::dense_dim", "aten::crow_indices", "aten::col_indices",  "aten::ccol_indices", "aten::row_indices",
        "aten::to_dense",  "aten::_to_dense",    "aten::smm",          "aten::hspmm",        "aten::sspaddmm"};
    const bool is_named_sparse =
        op->schema.name.starts_with("aten::") && op->schema.name.find("sparse") != std::string::npos;
    if (is_named_sparse || sparse.contains(op->schema.full_name())) continue;
    // Nor layers of mobile models; see tests/language.
    if (op->schema.name.starts_with("prepacked::")) continue;
    if (op->schema.name.starts_with("quantized::") || quantized.contains(op->schema.name)) continue;
    if (!covered.contains(op->schema.full_name())) missing += " " + op->schema.full_name();
  }
  EXPECT_EQ(missing, "");
}

}  // namespace
}  // namespace tensord::op_cases_test
