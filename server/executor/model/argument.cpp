#include "server/executor/model/argument.h"

#include "core/base/error.h"
#include "server/executor/model/unsigned_widening.h"

namespace tensord::server {
namespace {

using ops::TypeKind;
using ops::Value;

bool is_scalar(TypeKind kind) {
  return kind == TypeKind::kInt || kind == TypeKind::kFloat || kind == TypeKind::kBool || kind == TypeKind::kNumber;
}

// Element `i` of a contiguous tensor as a scalar value of type `kind`.
Value element(const Tensor& tensor, int64_t i, TypeKind kind) {
  const Tensor one = tensor.as_view({}, {}, tensor.offset() + i);
  switch (kind) {
    case TypeKind::kInt: return one.item_int();
    case TypeKind::kBool: return one.item_bool();
    case TypeKind::kNumber:
      if (one.dtype() == DType::kBool) return one.item_bool();
      if (!is_floating(one.dtype())) return one.item_int();
      return one.item_double();
    default: return one.item_double();
  }
}

Value to_scalar(TypeKind kind, const InferTensor& input) {
  check(input.tensor.numel() == 1, "inference input '", input.name, "' must have exactly one element, got shape ",
        to_string(input.shape));
  check(kind != TypeKind::kInt || !is_floating(input.tensor.dtype()), "inference input '", input.name,
        "' must be of an integral data-type, got ", name_of(input.datatype));
  return element(input.tensor, 0, kind);
}

// Converts to a list with one list of strings per row, for models with a batch dimension that take strings.
Value to_rows_of_texts(const ops::TypePtr& row_type, const InferTensor& input) {
  check(input.shape.size() == 2, "inference input '", input.name, "' must have two dimensions, got shape ",
        to_string(input.shape));
  std::vector<Value> rows;
  const auto width = static_cast<size_t>(input.shape[1]);
  for (size_t row = 0; row < static_cast<size_t>(input.shape[0]); ++row) {
    std::vector<Value> items;
    for (size_t i = 0; i < width; ++i) items.emplace_back(input.strings[row * width + i]);
    rows.emplace_back(ops::make_list(row_type->element(), std::move(items)));
  }
  return ops::make_list(row_type, std::move(rows));
}

Value to_list(const ops::TypePtr& element_type, const InferTensor& input) {
  if (is_list_of_strings(*element_type)) return to_rows_of_texts(element_type, input);
  check(input.shape.size() <= 1, "inference input '", input.name, "' must have one dimension, got shape ",
        to_string(input.shape));
  std::vector<Value> items;
  if (element_type->kind() == TypeKind::kString) {
    for (const std::string& text : input.strings) items.emplace_back(text);
  } else {
    check(element_type->kind() != TypeKind::kInt || !is_floating(input.tensor.dtype()), "inference input '", input.name,
          "' must be of an integral data-type, got ", name_of(input.datatype));
    for (int64_t i = 0; i < input.tensor.numel(); ++i) items.push_back(element(input.tensor, i, element_type->kind()));
  }
  return ops::make_list(element_type, std::move(items));
}

}  // namespace

bool is_feedable(const ops::Type& declared) {
  const ops::Type& type = without_optional(declared);
  if (type.kind() == TypeKind::kList) {
    const TypeKind kind = type.element()->kind();
    return kind == TypeKind::kString || is_list_of_strings(*type.element()) ||
           (is_scalar(kind) && kind != TypeKind::kNumber);
  }
  return type.kind() == TypeKind::kTensor || type.kind() == TypeKind::kString || is_scalar(type.kind());
}

std::string way_out(const ops::Type& type) {
  std::string way =
      "; give the model a wrapper, a module whose forward takes tensors, numbers, texts, lists of these, "
      "List[Tensor] or Dict[str, Tensor], and makes the argument of them";
  const bool is_container = type.kind() == ops::TypeKind::kTuple || type.kind() == ops::TypeKind::kList ||
                            type.kind() == ops::TypeKind::kDict || type.kind() == ops::TypeKind::kOptional;
  return is_container ? way + "; or export it by torch.export.save (model.pt2), which takes such arguments apart" : way;
}

bool takes_bytes(const ops::Type& declared) {
  const ops::Type& type = without_optional(declared);
  return type.kind() == TypeKind::kString || is_list_of_strings(type) ||
         (type.kind() == TypeKind::kList && is_list_of_strings(*type.element()));
}

void describe_argument(const ops::Type& declared, jit::KnownInput& known) {
  const ops::Type& type = without_optional(declared);
  if (type.kind() == TypeKind::kTensor) return;
  const bool is_list = type.kind() == TypeKind::kList;
  switch (is_list ? type.element()->kind() : type.kind()) {
    case TypeKind::kInt: known.dtype = DType::kInt64; break;
    case TypeKind::kFloat: known.dtype = DType::kFloat64; break;
    case TypeKind::kBool: known.dtype = DType::kBool; break;
    default: break;  // strings have their own datatype
  }
  known.rank = is_list && is_list_of_strings(*type.element()) ? 2 : 1;
  if (!is_list) known.from_front.emplace(0, 1);
}

Value to_argument(const ops::Type& declared, const InferTensor& input) {
  const ops::Type& type = without_optional(declared);
  switch (type.kind()) {
    case TypeKind::kTensor: return input.tensor;
    case TypeKind::kString:
      check(input.strings.size() == 1, "inference input '", input.name, "' must have exactly one element, got shape ",
            to_string(input.shape));
      return input.strings[0];
    case TypeKind::kList: return to_list(type.element(), input);
    default: return to_scalar(type.kind(), input);
  }
}

Error with_shapes(const Error& error, std::span<const InferTensor* const> inputs) {
  constexpr size_t kMaxInputs = 16;
  // A key that a script does not find in its dict; clients take NOT_FOUND for a model that does not exist.
  const ErrorCode code = error.code() == ErrorCode::kNotFound ? ErrorCode::kInvalidArgument : error.code();
  const bool is_of_shapes = code == ErrorCode::kInvalidArgument || code == ErrorCode::kOutOfRange ||
                            code == ErrorCode::kUnimplemented || code == ErrorCode::kScriptRaised;
  const bool names_input = std::string_view(error.what()).starts_with("inference input '");
  if (!is_of_shapes || names_input) return error;
  std::string text;
  size_t count = 0;
  for (const InferTensor* input : inputs) {
    if (input == nullptr || ++count > kMaxInputs) continue;
    text +=
        concat(text.empty() ? "; inputs: " : ", ", input->name, " ", name_of(input->datatype), to_string(input->shape));
  }
  return {code, error.what() + text};
}

std::string check_configured(const ops::Type& declared, const TensorSpec& spec, bool has_batch,
                             const std::string& file) {
  const ops::Type& type = without_optional(declared);
  const TypeKind kind = type.kind();
  const bool is_list = kind == TypeKind::kList;
  const TypeKind element_kind = is_list ? type.element()->kind() : kind;
  const std::optional<DType> dtype = spec.datatype ? to_dtype(tensor_datatype(*spec.datatype)) : std::nullopt;
  const bool is_float_for_int = element_kind == TypeKind::kInt && dtype && is_floating(*dtype);
  check(!is_float_for_int, file, ": config.pbtxt: input '", spec.name, "' is ", declared.str(),
        " in the script, which ", is_float_for_int ? name_of(*spec.datatype) : "", " cannot feed");
  const std::optional<Dims>& given = spec.reshape ? spec.reshape : spec.shape;
  if (!given || kind == TypeKind::kTensor) return {};
  if (!is_list) {
    for (size_t i = has_batch ? 1 : 0; i < given->size(); ++i) {
      check((*given)[i] < 0 || (*given)[i] == 1, file, ": config.pbtxt: input '", spec.name, "' is ", declared.str(),
            " in the script, one element, but its dims have ", (*given)[i]);
    }
    return {};
  }
  const size_t rank = is_list_of_strings(*type.element()) ? 2 : 1;
  if (given->size() != rank) {
    const bool can_drop = has_batch && rank == 1 && given->size() == 2 && (*given)[1] == 1;
    fail(ErrorCode::kInvalidArgument, file, ": config.pbtxt: input '", spec.name, "' is ", declared.str(),
         " in the script and takes ", rank, rank == 1 ? " dimension" : " dimensions", ", but is given ", given->size(),
         has_batch ? ", that of the batch among them. " : ". ",
         can_drop    ? "Add `reshape { shape: [ ] }`, and the batch is the list"
         : has_batch ? "Leave out max_batch_size, or give dims without it"
                     : "Say `dims: [ -1 ]` for each of them");
  }
  const int64_t last = given->back();
  if (last < 0 || (has_batch && rank == 1)) return {};
  return concat("input '", spec.name, "' is ", declared.str(), " in the script, of any length, but config.pbtxt takes ",
                "exactly ", last, "; `dims: [ -1 ]` takes any");
}

}  // namespace tensord::server
