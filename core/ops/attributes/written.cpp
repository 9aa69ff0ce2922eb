#include "core/ops/attributes/written.h"

#include "core/base/error.h"

namespace tensord::ops {
namespace {

WritesInto::DTypes dtypes_of(const Op& base) {
  const WritesInto* rule = base.attributes.get<WritesInto>();
  return rule ? rule->dtypes : WritesInto::kAnyDType;
}
WritesInto::Sharing sharing_of(const Op& base) {
  const WritesInto* rule = base.attributes.get<WritesInto>();
  if (rule && rule->sharing) return *rule->sharing;
  return base.is_pointwise ? WritesInto::kSharesWhole : WritesInto::kSharesPart;
}

void check_tensors_apart(const Tensor& target, const Value& input, WritesInto::Sharing allowed) {
  if (input.is_list() && input.to_list()->element->kind() == TypeKind::kTensor) {
    for (const Value& item : input.to_list()->items) check_tensors_apart(target, item, allowed);
  }
  if (!input.is_tensor()) return;
  const Tensor& tensor = input.to_tensor();
  const Overlap shared = tensor.is_same(target) ? Overlap::kFull : overlap(tensor, target);
  check(shared != Overlap::kPartial && (shared != Overlap::kFull || allowed == WritesInto::kSharesWhole),
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
        "location. Please clone() the tensor before performing the operation.");
}

// Whether the call requests a dtype; it is that of the target.
bool names_dtype(const Op& base, std::span<const Value> inputs) {
  for (size_t i = 0; i < inputs.size() && i < base.schema.arguments.size(); ++i) {
    if (base.schema.arguments[i].enum_name == "ScalarType" && !inputs[i].is_none()) return true;
  }
  return false;
}

}  // namespace

void check_writable(const Tensor& tensor) {
  if (tensor.storage() && !tensor.storage()->ensure_writable()) {
    fail(ErrorCode::kFailedPrecondition, "writes into a tensor whose memory is read-only");
  }
}

void check_no_internal_overlap(const Tensor& tensor) {
  for (int64_t i = 0; i < tensor.ndim(); ++i) {
    check(tensor.sizes()[i] < 2 || tensor.strides()[i] != 0,
          "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
          "Please clone() the tensor before performing the operation.");
  }
}

bool looks_before_resizing(const Op& base) { return sharing_of(base) == WritesInto::kSharesNothing; }

void check_takes(const Op& base, DType result, const Tensor& target, std::span<const Value> inputs) {
  const DType dtype = target.dtype();
  check(can_cast(result, dtype), "result type ", name_of(result), " can't be cast to the desired output type ",
        name_of(dtype));
  if (result == dtype) return;
  const WritesInto::DTypes rule = names_dtype(base, inputs) ? WritesInto::kSameDType : dtypes_of(base);
  const bool is_taken =
      rule == WritesInto::kAnyDType || (rule == WritesInto::kSameKind && is_complex(result) == is_complex(dtype));
  check(is_taken, "Expected out tensor to have dtype ", name_of(result), ", but got ", name_of(dtype), " instead");
}

void check_apart(const Op& base, const Tensor& target, std::span<const Value> inputs) {
  const WritesInto::Sharing allowed = sharing_of(base);
  if (allowed == WritesInto::kSharesPart) return;
  for (const Value& input : inputs) check_tensors_apart(target, input, allowed);
}

}  // namespace tensord::ops
