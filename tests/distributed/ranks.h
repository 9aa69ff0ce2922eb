#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/execution_context.h"
#include "core/base/thread.h"
#include "core/distributed/gloo/gloo_backend.h"
#include "core/distributed/group/process_group.h"
#include "core/distributed/local/local_backend.h"
#include "core/distributed/store/memory_store.h"
#include "core/tensor/complex.h"
#include "core/tensor/device_runtime.h"

namespace tensord::distributed::fixtures {

using namespace std::chrono_literals;

// The backends in this build.
inline std::vector<std::string> backend_names() {
  std::vector<std::string> names{"local"};
  if (has_gloo()) names.push_back("gloo");
  return names;
}
inline BackendFactory backends_of(const std::string& name) {
  return name == "gloo" ? gloo_backends() : local_backends();
}

// The device of the tests' tensors.
inline Device& device_of_tensors() {
  static Device device;
  return device;
}
inline Tensor empty(Dims sizes, DType dtype = DType::kFloat32) {
  return Tensor::empty(std::move(sizes), dtype, device_of_tensors());
}

// A process would have its own stream: ranks that are threads would wait for each other in the device's default stream.
class OwnStream {
 public:
  OwnStream() {
    const Device device = device_of_tensors();
    if (!device.is_host()) stream_ = device_runtime(device).make_stream(device.index);
    scope_.emplace(stream_.get());
  }

 private:
  std::unique_ptr<DeviceStream> stream_;
  std::optional<ContextPart<&ExecutionContext::stream>> scope_;
};

// Runs fn on `size` threads, each a rank of one group, and returns their errors, "" for none.
inline std::vector<std::string> errors_of_ranks(int size, const BackendFactory& backends, const GroupOptions& options,
                                                const std::function<void(ProcessGroup&)>& fn) {
  const auto store = std::make_shared<MemoryStore>(20s);
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<Thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back("rank", [&, rank] {
      const OwnStream stream;
      try {
        ProcessGroup group(store->clone(), "test", rank, size, backends, options);
        fn(group);
        group.close();
      } catch (const std::exception& error) {
        errors[static_cast<size_t>(rank)] = *error.what() ? error.what() : "an error without a text";
      }
    });
  }
  for (Thread& thread : threads) thread.join();
  return errors;
}

// None of the ranks may throw.
inline void on_ranks(int size, const BackendFactory& backends, const std::function<void(ProcessGroup&)>& fn,
                     GroupOptions options = {.timeout = 20s}) {
  const auto errors = errors_of_ranks(size, backends, options, fn);
  for (size_t rank = 0; rank < errors.size(); ++rank) EXPECT_EQ(errors[rank], "") << "rank " << rank;
}

// --- tensors

inline constexpr DType kAllDTypes[] = {DType::kUInt8,   DType::kInt8,      DType::kInt16,      DType::kInt32,
                                       DType::kInt64,   DType::kFloat16,   DType::kBFloat16,   DType::kFloat32,
                                       DType::kFloat64, DType::kComplex64, DType::kComplex128, DType::kBool};

// The layout of a tensor: row-major, transposed, every second element of larger memory, or reversed dimensions with
// gaps.
enum class Layout { kDense, kTransposed, kEverySecond, kGaps };
inline constexpr Layout kAllLayouts[] = {Layout::kDense, Layout::kTransposed, Layout::kEverySecond, Layout::kGaps};

inline std::vector<std::complex<double>> values_of(const Tensor& tensor) {
  std::vector<std::complex<double>> values;
  const Tensor dense = tensor.to(Device{}).contiguous();
  dispatch_any(tensor.dtype(), "test", [&]<class T>() {
    for (int64_t i = 0; i < dense.numel(); ++i) {
      if constexpr (std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>) {
        values.emplace_back(dense.data<T>()[i].real(), dense.data<T>()[i].imag());
      } else {
        values.emplace_back(static_cast<double>(dense.data<T>()[i]));
      }
    }
  });
  return values;
}

inline void fill(const Tensor& tensor, const std::function<std::complex<double>(int64_t)>& value) {
  const Tensor dense = Tensor::empty(tensor.sizes(), tensor.dtype());
  dispatch_any(tensor.dtype(), "test", [&]<class T>() {
    for (int64_t i = 0; i < dense.numel(); ++i) {
      const std::complex<double> v = value(i);
      if constexpr (std::is_same_v<T, Complex64> || std::is_same_v<T, Complex128>) {
        dense.data<T>()[i] =
            T(static_cast<typename T::value_type>(v.real()), static_cast<typename T::value_type>(v.imag()));
      } else if constexpr (std::is_same_v<T, bool>) {
        dense.data<T>()[i] = v.real() != 0;
      } else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
        dense.data<T>()[i] = T(static_cast<float>(v.real()));
      } else {
        dense.data<T>()[i] = static_cast<T>(v.real());
      }
    }
  });
  tensor.copy_from(dense);
}

// A tensor of this layout, with the memory around it.
struct Laid {
  Tensor tensor, memory;

  // Elements of the memory outside the tensor must be unchanged.
  void expect_gaps_untouched() const {
    const Tensor copy = memory.clone();
    fill(tensor, [](int64_t) { return 1.0; });
    for (const auto& value : values_of(memory)) EXPECT_EQ(value, 1.0) << "written beside the tensor";
    memory.copy_from(copy);
  }
};

inline Laid laid_out(Dims sizes, DType dtype, Layout layout,
                     const std::function<std::complex<double>(int64_t)>& value) {
  Laid laid;
  const auto make = [&](int64_t count, Dims strides, int64_t offset) {
    laid.memory = empty(Dims{count}, dtype);
    fill(laid.memory, [](int64_t) { return 1.0; });
    laid.tensor = laid.memory.as_view(sizes, std::move(strides), offset);
  };
  const int64_t numel = checked_numel(sizes);
  Dims strides = contiguous_strides(sizes);
  if (layout == Layout::kDense) make(numel, strides, 0);
  if (layout == Layout::kTransposed) {
    int64_t step = 1;
    for (size_t i = 0; i < sizes.size(); ++i) {
      strides[i] = step;
      step *= std::max<int64_t>(1, sizes[i]);
    }
    make(numel, strides, 0);
  }
  if (layout == Layout::kEverySecond) {
    for (int64_t& stride : strides) stride *= 2;
    make(2 * numel + 1, strides, 1);
  }
  if (layout == Layout::kGaps) {
    for (size_t i = 0; i + 1 < sizes.size(); ++i) strides[i] *= 3;
    make(3 * numel + 5, strides, 5);
  }
  fill(laid.tensor, value);
  return laid;
}

}  // namespace tensord::distributed::fixtures
