// Reductions, sorting and cumulative operators.
#include <limits>

#include "core/base/error.h"
#include "core/jit/exporters/onnx/call.h"

namespace tensord::jit::onnx {
namespace {

// The reduced dimensions, normalized; all of them if none are given.
Dims reduced_dims(Call& c, const char* name) {
  const int64_t rank = c.t().ndim();
  Dims dims;
  if (c.has(name)) {
    for (const int64_t dim : c.ints(name)) {
      if (rank > 0) dims.push_back(wrap_dim(dim, rank));
    }
  }
  if (dims.empty()) {
    for (int64_t dim = 0; dim < rank; ++dim) dims.push_back(dim);
  }
  return dims;
}

bool keeps_dims(Call& c) { return c.has("keepdim") && c.flag("keepdim"); }

std::string reduce(Call& c, const char* op_type, const std::string& x, const Dims& dims, bool keeps) {
  if (c.t().ndim() == 0) return x;
  return c.emit(op_type, {x, c.int_vector(dims)}, {{"keepdims", int64_t{keeps}}});
}

template <const char* kName>
void reduction(Call& c) {
  const std::string x = c.cast(c.x(), c.t().dtype(), c.dtype());
  c.set(reduce(c, kName, x, reduced_dims(c, "dim"), keeps_dims(c)));
}

// Reduces bools as numbers.
template <const char* kName>
void logical_reduction(Call& c) {
  if (!c.in("self").a.is_strided()) return;  // of a list: a bool that the file has nothing for
  const std::string truth = c.cast(c.operand("self", DType::kBool), DType::kBool, DType::kInt32);
  c.set(c.cast(reduce(c, kName, truth, reduced_dims(c, "dim"), keeps_dims(c)), DType::kInt32, c.dtype()));
}

template <const char* kReduce, const char* kIndex>
void extreme(Call& c) {
  if (c.has("other")) {
    const char* name = std::string_view(kReduce) == "ReduceMax" ? "Max" : "Min";
    return c.set(c.emit(name, {c.operand("self", c.dtype()), c.operand("other", c.dtype())}));
  }
  if (!c.has("dim")) return c.set(reduce(c, kReduce, c.x(), reduced_dims(c, "dim"), false));
  const int64_t dim = c.dim("dim", std::max<int64_t>(c.t().ndim(), 1));
  const std::string x = c.x();
  c.set(reduce(c, kReduce, x, Dims{dim}, keeps_dims(c)), 0);
  c.set(c.emit(kIndex, {x}, {{"axis", dim}, {"keepdims", int64_t{keeps_dims(c)}}}), 1);
}

template <const char* kIndex>
void index_of(Call& c) {
  if (c.has("dim")) {
    const int64_t dim = c.dim("dim", std::max<int64_t>(c.t().ndim(), 1));
    return c.set(c.emit(kIndex, {c.x()}, {{"axis", dim}, {"keepdims", int64_t{keeps_dims(c)}}}));
  }
  const std::string flat = c.reshape(c.x(), Dims{-1});
  c.set(c.emit(kIndex, {flat}, {{"axis", int64_t{0}}, {"keepdims", int64_t{0}}}));
}

// The number of reduced elements minus a correction, as a tensor of shape [].
std::string count_less(Call& c, const Dims& dims, double correction) {
  double count = 1;
  bool is_open = false;
  for (const int64_t dim : dims) {
    count *= static_cast<double>(c.t().size(dim));
    is_open = is_open || c.is_open("self", dim);
  }
  if (!is_open) return c.scalar(std::max(0.0, count - correction), c.t().dtype());
  const std::string sizes = c.emit("Gather", {c.shape_of(c.x()), c.int_vector(dims)});
  const std::string product = c.emit("ReduceProd", {sizes}, {{"keepdims", int64_t{0}}});
  const std::string less =
      c.emit("Sub", {c.cast(product, DType::kInt64, c.t().dtype()), c.scalar(correction, c.t().dtype())});
  return c.emit("Max", {less, c.scalar(0, c.t().dtype())});
}

std::string variance(Call& c) {
  const Dims dims = reduced_dims(c, "dim");
  double correction = 1;
  if (c.has("unbiased")) correction = c.flag("unbiased") ? 1 : 0;
  if (c.has("correction")) correction = c.number("correction");
  const std::string x = c.x(), mean = reduce(c, "ReduceMean", x, dims, true);
  const std::string distance = c.emit("Sub", {x, mean});
  const std::string sum = reduce(c, "ReduceSum", c.emit("Mul", {distance, distance}), dims, keeps_dims(c));
  return c.emit("Div", {sum, count_less(c, dims, correction)});
}

void var(Call& c) { c.set(variance(c)); }
void std_deviation(Call& c) { c.set(c.emit("Sqrt", {variance(c)})); }

template <Handler kSpread>
void with_mean(Call& c) {
  kSpread(c);
  c.set(reduce(c, "ReduceMean", c.x(), reduced_dims(c, "dim"), keeps_dims(c)), 1);
}

void aminmax(Call& c) {
  const Dims dims = reduced_dims(c, "dim");
  c.set(reduce(c, "ReduceMin", c.x(), dims, keeps_dims(c)), 0);
  c.set(reduce(c, "ReduceMax", c.x(), dims, keeps_dims(c)), 1);
}

void count_nonzero(Call& c) {
  const std::string counted = c.cast(c.operand("self", DType::kBool), DType::kBool, c.dtype());
  c.set(reduce(c, "ReduceSum", counted, reduced_dims(c, "dim"), false));
}

void vector_norm(Call& c) {
  const double p = c.has("p") ? c.number("p") : c.has("ord") ? c.number("ord") : 2;
  const Dims dims = reduced_dims(c, "dim");
  const std::string x = c.cast(c.x(), c.t().dtype(), c.dtype());
  const bool keeps = keeps_dims(c);
  if (p == 2) return c.set(reduce(c, "ReduceL2", x, dims, keeps));
  if (p == 1) return c.set(reduce(c, "ReduceL1", x, dims, keeps));
  if (p == std::numeric_limits<double>::infinity())
    return c.set(reduce(c, "ReduceMax", c.emit("Abs", {x}), dims, keeps));
  c.refuse(concat("norms of order ", p, " cannot be exported to ONNX"));
}

template <const char* kName>
void softmax(Call& c) {
  const char* self = c.op().schema.arguments[0].name.c_str();
  const int64_t dim = c.dim("dim", std::max<int64_t>(c.t(self).ndim(), 1));
  c.set(c.emit(kName, {c.cast(c.x(self), c.t(self).dtype(), c.dtype())}, {{"axis", dim}}));
}

void cumulative_sum(Call& c) {
  const std::string x = c.cast(c.x(), c.t().dtype(), c.dtype());
  c.set(c.emit("CumSum", {x, c.constant(Tensor::scalar(c.dim("dim", c.t().ndim()), DType::kInt64))}));
}

void topk(Call& c) {
  const Attributes attributes{{"axis", c.dim("dim", c.t().ndim())},
                              {"largest", int64_t{c.flag("largest")}},
                              {"sorted", int64_t{c.flag("sorted")}}};
  const Traced& k = c.in("k");
  const Strings names = c.emit_many("TopK", {c.x(), c.size_vector({&k, 1})}, attributes, 2);
  c.set(names[0], 0);
  c.set(names[1], 1);
}

// Equal elements may be ordered differently; PyTorch guarantees an order only for `stable`.
Strings sorted(Call& c) {
  const int64_t dim = c.dim("dim", c.t().ndim());
  const std::string x = c.x();
  const Attributes attributes{{"axis", dim}, {"largest", int64_t{c.flag("descending")}}, {"sorted", int64_t{1}}};
  return c.emit_many("TopK", {x, c.size_at(x, dim)}, attributes, 2);
}

void sort(Call& c) {
  const Strings names = sorted(c);
  c.set(names[0], 0);
  c.set(names[1], 1);
}

void argsort(Call& c) { c.set(sorted(c)[1]); }

constexpr char kSum[] = "ReduceSum";
constexpr char kMean[] = "ReduceMean";
constexpr char kReduceMax[] = "ReduceMax";
constexpr char kReduceMin[] = "ReduceMin";
constexpr char kProd[] = "ReduceProd";
constexpr char kLogSumExp[] = "ReduceLogSumExp";
constexpr char kArgMax[] = "ArgMax";
constexpr char kArgMin[] = "ArgMin";
constexpr char kSoftmax[] = "Softmax";
constexpr char kLogSoftmax[] = "LogSoftmax";

}  // namespace

std::span<const HandlerRow> reduce_rows() {
  static const HandlerRow kRows[] = {
      {"aten::sum", reduction<kSum>},
      {"aten::mean", reduction<kMean>},
      {"aten::amax", reduction<kReduceMax>},
      {"aten::amin", reduction<kReduceMin>},
      {"aten::prod", reduction<kProd>},
      {"aten::logsumexp", reduction<kLogSumExp>},
      {"aten::any", logical_reduction<kReduceMax>},
      {"aten::all", logical_reduction<kReduceMin>},
      {"aten::max", extreme<kReduceMax, kArgMax>},
      {"aten::min", extreme<kReduceMin, kArgMin>},
      {"aten::argmax", index_of<kArgMax>},
      {"aten::argmin", index_of<kArgMin>},
      {"aten::var", var},
      {"aten::std", std_deviation},
      {"aten::var_mean", with_mean<var>},
      {"aten::std_mean", with_mean<std_deviation>},
      {"aten::aminmax", aminmax},
      {"aten::count_nonzero", count_nonzero},
      {"aten::norm", vector_norm},
      {"aten::linalg_vector_norm", vector_norm},
      {"aten::softmax", softmax<kSoftmax>},
      {"aten::_softmax", softmax<kSoftmax>},
      {"aten::log_softmax", softmax<kLogSoftmax>},
      {"aten::_log_softmax", softmax<kLogSoftmax>},
      {"aten::cumsum", cumulative_sum},
      {"aten::topk", topk},
      {"aten::sort", sort},
      {"aten::argsort", argsort},
  };
  return kRows;
}

}  // namespace tensord::jit::onnx
