#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "core/distributed/nccl/nccl_api.h"
#include "core/tensor/half.h"
#include "tests/cuda/emulated/libraries.h"

// The numbers that nccl.cpp reduces.
namespace tensord::cuda::nccl {

using distributed::NcclOp;
using distributed::NcclType;

inline constexpr int kInvalidArgument = static_cast<int>(distributed::NcclResult::kInvalidArgument);

inline size_t size_of(NcclType type) {
  switch (type) {
    case NcclType::kInt8:
    case NcclType::kUint8: return 1;
    case NcclType::kFloat16:
    case NcclType::kBfloat16: return 2;
    case NcclType::kInt32:
    case NcclType::kFloat32: return 4;
    case NcclType::kInt64:
    case NcclType::kFloat64: return 8;
  }
  throw emulated::Refused{kInvalidArgument, "there is no such type"};
}

template <class Fn>
void with_type(NcclType type, const Fn& fn) {
  switch (type) {
    case NcclType::kInt8: return fn(int8_t{});
    case NcclType::kUint8: return fn(uint8_t{});
    case NcclType::kInt32: return fn(int32_t{});
    case NcclType::kInt64: return fn(int64_t{});
    case NcclType::kFloat16: return fn(Half{});
    case NcclType::kBfloat16: return fn(BFloat16{});
    case NcclType::kFloat32: return fn(float{});
    case NcclType::kFloat64: return fn(double{});
  }
}

// Numbers are added in their own type, those of 16 bits in float.
template <class T>
using Sum = std::conditional_t<sizeof(T) == 2, float, T>;

template <class T>
Sum<T> combined(NcclOp op, Sum<T> a, Sum<T> b) {
  switch (op) {
    case NcclOp::kProd: return static_cast<Sum<T>>(a * b);
    case NcclOp::kMax: return std::max(a, b);
    case NcclOp::kMin: return std::min(a, b);
    default: return static_cast<Sum<T>>(a + b);
  }
}

// The ranks' parts in their order, so that all ranks compute the same.
inline void reduce_parts(NcclType type, NcclOp op, double factor, const std::vector<const std::byte*>& parts,
                         size_t count, std::byte* out) {
  with_type(type, [&]<class T>(T) {
    for (size_t i = 0; i < count; ++i) {
      const auto value = [&](size_t rank) {
        const auto x = static_cast<Sum<T>>(reinterpret_cast<const T*>(parts[rank])[i]);
        return factor == 1 ? x : static_cast<Sum<T>>(x * static_cast<Sum<T>>(factor));
      };
      Sum<T> sum = value(0);
      for (size_t rank = 1; rank < parts.size(); ++rank) sum = combined<T>(op, sum, value(rank));
      if (op == NcclOp::kAvg) sum = static_cast<Sum<T>>(sum / static_cast<Sum<T>>(parts.size()));
      reinterpret_cast<T*>(out)[i] = static_cast<T>(sum);
    }
  });
}

}  // namespace tensord::cuda::nccl
