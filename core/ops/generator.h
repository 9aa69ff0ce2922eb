#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/device.h"
#include "core/base/execution_context.h"
#include "core/base/mutex.h"

namespace tensord::ops {

// Where a device's kernels draw from: Philox 4x32-10 with this key, each thread's counter at the offset, a multiple
// of 4.
struct PhiloxState {
  uint64_t seed = 0, offset = 0;
  bool operator==(const PhiloxState&) const = default;
};

// Source of random numbers: the Mersenne Twister with PyTorch's ways of drawing from it, so that
// one seed gives the same numbers, and for kernels on devices a PhiloxState for each device. Thread-safety: hold lock()
// around every other call while several threads use one.
//
// Made for one kind of device, it serves that kind alone, as PyTorch's do, and has one PhiloxState for all its devices.
class Generator {
 public:
  explicit Generator(uint64_t seed, std::optional<DeviceKind> only_for = std::nullopt) : only_for_(only_for) {
    set_seed(seed);
  }
  Generator(const Generator&) = delete;
  Generator& operator=(const Generator&) = delete;

  // The Mersenne Twister uses only the lower 32 bits. Devices begin anew.
  void set_seed(uint64_t seed);
  uint64_t seed() const { return seed_; }
  std::optional<DeviceKind> only_for() const { return only_for_; }
  // clang's analysis does not follow a lock that is returned.
  [[nodiscard]] MutexLock lock() TENSORD_NO_THREAD_SAFETY_ANALYSIS { return MutexLock(mutex_); }

  uint32_t bits32() {
    if (position_ == kWords) refill();
    return tempered(words_[position_++]);
  }
  uint64_t bits64() {
    const uint64_t high = bits32();
    return high << 32 | bits32();
  }
  // The same as repeated bits32(), but faster.
  void fill_bits32(std::span<uint32_t> to);
  // In [0, 1): `digits` of 24 for float, 11 for half, 8 for bfloat16.
  float uniform_float(int digits = 24);
  double uniform_double();
  // Mean 0, deviation 1. Two are made at a time; one is kept for the next call.
  double normal();

  // The whole state, including the kept normal, in the layout of torch.get_rng_state() (5056 bytes). set_state throws
  // Error{kInvalidArgument} for bytes that are not a state.
  std::vector<uint8_t> state() const;
  void set_state(std::span<const uint8_t> bytes);

  // For a call whose threads draw at most `numbers` numbers of 32 bits each; the next call begins behind them.
  PhiloxState take(Device device, uint64_t numbers);
  // The state for one device, in the layout of torch.cuda.get_rng_state() (16 bytes). set_state throws as above.
  std::vector<uint8_t> state(Device device) const;
  void set_state(Device device, std::span<const uint8_t> bytes);

  // Everything, for who draws the same numbers again.
  struct Saved {
    std::vector<uint8_t> host;
    uint64_t device_seed = 0;  // of devices that were not drawn on yet
    std::vector<PhiloxState> devices;
    bool operator==(const Saved&) const = default;
  };
  Saved saved() const { return {state(), device_seed_, devices_}; }
  void restore(const Saved& saved) {
    set_state(saved.host);
    device_seed_ = saved.device_seed;
    devices_ = saved.devices;
  }

 private:
  static constexpr int kWords = 624;
  static uint32_t tempered(uint32_t word) {
    word ^= word >> 11;
    word ^= word << 7 & 0x9d2c5680u;
    word ^= word << 15 & 0xefc60000u;
    return word ^ word >> 18;
  }
  void refill();
  size_t index_of(Device device) const { return only_for_ ? 0 : static_cast<size_t>(device.index); }
  PhiloxState& device_state(Device device);

  Mutex mutex_;
  const std::optional<DeviceKind> only_for_;
  std::array<uint32_t, kWords> words_;
  int position_ = kWords;  // index of the next word
  uint64_t seed_ = 0;
  std::optional<double> next_normal_;
  uint64_t device_seed_ = 0;          // of devices that were not drawn on yet
  std::vector<PhiloxState> devices_;  // by index_of
};

// The process-wide generator that torch.manual_seed sets.
Generator& default_generator();

// The generator that operators on the calling thread draw from: the innermost guard's, or the default one.
Generator& current_generator();
// The same for numbers on a device. Throws Error{kInvalidArgument} if the generator was made for other devices.
Generator& current_generator(Device device);

// Gives the calling thread a generator of its own until the end of the scope, so that the numbers of a training job do
// not depend on what else runs. The generator must outlive the guard.
struct GeneratorGuard : ContextPart<&ExecutionContext::generator> {
  explicit GeneratorGuard(Generator& generator) : ContextPart(&generator) {}
};

}  // namespace tensord::ops
