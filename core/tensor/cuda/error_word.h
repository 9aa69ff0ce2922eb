#pragma once

#include <cstdint>

#include "core/tensor/cuda/address.h"

namespace tensord::cuda {

// What kernels may find wrong with the numbers that they work on.
enum class KernelError : int32_t {
  kNone,
  kDivisionByZero,
  kIndexOutOfRange,         // values: index, dimension, size
  kRowOutOfRange,           // values: index; embedding
  kElementIndexOutOfRange,  // values: index, size; take, put
  kClassOutOfRange,         // values: index, classes; one_hot, losses
  kRepeatsNegative,
  kMaxIndexOutOfRange,  // values: index, elements of a plane; max pooling
  kTargetOutOfRange,
  kLabelOutOfRange,  // values: index, classes; ctc_loss
  kBoxOfNoImage,     // values: index, images; regions
  kBoxNotFinite,
  kBoxTooLarge,            // values: bins, samples
  kBagIndexOutOfRange,     // of embedding_bag; values: index
  kBagOffsetNotZero,       // the first; values: offset
  kBagOffsetTooLarge,      // values: count of indices, offset
  kBagOffsetsDecrease,     // values: offset, the one before
  kProbabilityOutOfRange,  // of bernoulli
  kRateOutOfRange,         // of poisson; values: the rate's bits as a double
  kTrialsOutOfRange,       // of binomial; values: the bits of the count and of the chance
};

// One a stream, in pinned memory that kernels write: the first error since the host looked.
struct ErrorWord {
  int32_t code = 0;      // KernelError
  int32_t is_taken = 0;  // by a thread that fills it
  int64_t values[3] = {};
  const char* operator_name = nullptr;  // that of the kernel's ErrorSink
};

// Where the kernels of one call note errors.
struct ErrorSink {
  DeviceAddress word;
  const char* operator_name = nullptr;  // of the host, kept as long as the process; null: no operator queued the kernel
};

}  // namespace tensord::cuda
