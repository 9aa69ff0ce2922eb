#pragma once

#include <cstdint>

// The memory layout of DLPack 1.0 (https://dmlc.github.io/dlpack), the exchange format of array libraries.
namespace tensord::python::dlpack {

struct Device {
  int32_t type;  // 1: host memory, 2: CUDA
  int32_t id;
};
struct DataType {
  uint8_t code;  // see codes below
  uint8_t bits;
  uint16_t lanes;
};
enum Code : uint8_t { kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kComplex = 5, kBool = 6 };
struct Tensor {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: row-major
  uint64_t byte_offset;
};
// The struct of versions before 1.0.
struct Managed {
  Tensor tensor;
  void* owner;
  void (*deleter)(Managed*);
};
struct Version {
  uint32_t major, minor;
};
inline constexpr uint64_t kReadOnly = 1, kCopied = 2;
struct ManagedVersioned {
  Version version;
  void* owner;
  void (*deleter)(ManagedVersioned*);
  uint64_t flags;
  Tensor tensor;
};

}  // namespace tensord::python::dlpack
