#include "core/ops/generator.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/error.h"

namespace tensord::ops {
namespace {

constexpr int kShift = 397;  // of the recurrence (Matsumoto and Nishimura, "Mersenne Twister", 1998)

uint32_t twist(uint32_t upper, uint32_t lower) {
  const uint32_t mixed = (upper & 0x80000000u) | (lower & 0x7fffffffu);
  const uint32_t odd = 0u - (lower & 1u);
  return mixed >> 1 ^ (odd & 0x9908b0dfu);
}

// The byte layout of torch.get_rng_state().
struct TorchState {
  uint64_t seed;
  int32_t left;  // unused words of the block, plus 1
  int32_t is_seeded;
  uint64_t next;
  uint64_t words[624];
  double normal_x, normal_y, normal_rho;
  int32_t has_normal;
  int32_t padding;
  float next_float_normal;
  int32_t has_float_normal;
};
static_assert(sizeof(TorchState) == 5056);

}  // namespace

void Generator::set_seed(uint64_t seed) {
  words_[0] = static_cast<uint32_t>(seed);
  for (uint32_t i = 1; i < kWords; ++i) words_[i] = 1812433253u * (words_[i - 1] ^ words_[i - 1] >> 30) + i;
  position_ = kWords;
  seed_ = seed;
  next_normal_.reset();
  device_seed_ = seed;
  devices_.clear();
}

// Two loops, so that neither reads what it writes and both are vectorized.
void Generator::refill() {
  uint32_t* words = words_.data();
  for (int i = 0; i < kWords - kShift; ++i) words[i] = words[i + kShift] ^ twist(words[i], words[i + 1]);
  for (int i = kWords - kShift; i < kWords - 1; ++i) {
    words[i] = words[i + kShift - kWords] ^ twist(words[i], words[i + 1]);
  }
  words[kWords - 1] = words[kShift - 1] ^ twist(words[kWords - 1], words[0]);
  position_ = 0;
}

void Generator::fill_bits32(std::span<uint32_t> to) {
  while (!to.empty()) {
    if (position_ == kWords) refill();
    const size_t count = std::min(to.size(), static_cast<size_t>(kWords - position_));
    const uint32_t* from = words_.data() + position_;
    for (size_t i = 0; i < count; ++i) to[i] = tempered(from[i]);
    position_ += static_cast<int>(count);
    to = to.subspan(count);
  }
}

float Generator::uniform_float(int digits) {
  return static_cast<float>(bits32() & ((1u << digits) - 1)) * std::ldexp(1.0f, -digits);
}

double Generator::uniform_double() {
  return static_cast<double>(bits64() & ((uint64_t{1} << 53) - 1)) * std::ldexp(1.0, -53);
}

double Generator::normal() {
  if (next_normal_) {
    const double value = *next_normal_;
    next_normal_.reset();
    return value;
  }
  const double u1 = uniform_double(), u2 = uniform_double();
  const double radius = std::sqrt(-2.0 * std::log1p(-u2)), theta = 2.0 * M_PI * u1;
  next_normal_ = radius * std::sin(theta);
  return radius * std::cos(theta);
}

std::vector<uint8_t> Generator::state() const {
  TorchState state{};
  state.seed = seed_;
  state.left = kWords + 1 - position_;
  state.is_seeded = 1;
  state.next = static_cast<uint64_t>(position_);
  std::copy(words_.begin(), words_.end(), state.words);
  state.has_normal = next_normal_.has_value();
  state.normal_y = next_normal_.value_or(0);
  std::vector<uint8_t> bytes(sizeof state);
  std::memcpy(bytes.data(), &state, sizeof state);
  return bytes;
}

void Generator::set_state(std::span<const uint8_t> bytes) {
  TorchState state;
  check(bytes.size() == sizeof state, "RNG state is wrong size: got ", bytes.size(), " bytes, expected ", sizeof state);
  std::memcpy(&state, bytes.data(), sizeof state);
  const bool is_fresh = state.next == 0 && state.left == 1;
  const bool is_used = state.next <= kWords && state.left == kWords + 1 - static_cast<int32_t>(state.next);
  check(state.is_seeded == 1 && (is_fresh || is_used), "Invalid mt19937 state");
  for (int i = 0; i < kWords; ++i) {
    check(state.words[i] <= UINT32_MAX, "Invalid mt19937 state");
  }
  std::copy(std::begin(state.words), std::end(state.words), words_.begin());
  position_ = is_fresh ? kWords : static_cast<int>(state.next);
  seed_ = state.seed;
  next_normal_ = state.has_normal ? std::optional(state.normal_y) : std::nullopt;
}

PhiloxState& Generator::device_state(Device device) {
  const size_t index = index_of(device);
  if (devices_.size() <= index) devices_.resize(index + 1, {device_seed_, 0});
  return devices_[index];
}

PhiloxState Generator::take(Device device, uint64_t numbers) {
  PhiloxState& state = device_state(device);
  const PhiloxState out = state;
  state.offset += (numbers + 3) / 4 * 4;
  return out;
}

std::vector<uint8_t> Generator::state(Device device) const {
  const size_t index = index_of(device);
  const PhiloxState state = index < devices_.size() ? devices_[index] : PhiloxState{device_seed_, 0};
  std::vector<uint8_t> bytes(sizeof state);
  std::memcpy(bytes.data(), &state, sizeof state);
  return bytes;
}

void Generator::set_state(Device device, std::span<const uint8_t> bytes) {
  PhiloxState state;
  check(bytes.size() == sizeof state, "RNG state is wrong size: got ", bytes.size(), " bytes, expected ", sizeof state);
  std::memcpy(&state, bytes.data(), sizeof state);
  check(state.offset % 4 == 0, "offset must be a multiple of 4");
  device_state(device) = state;
}

Generator& default_generator() {
  static Generator generator(67280421310721u);
  return generator;
}

Generator& current_generator() {
  Generator* const own = execution_context().generator;
  return own ? *own : default_generator();
}

Generator& current_generator(Device device) {
  Generator& generator = current_generator();
  if (generator.only_for() && *generator.only_for() != device.kind) {
    fail(ErrorCode::kInvalidArgument, "Expected a '", name_of(device.kind), "' device type for generator but found '",
         name_of(*generator.only_for()), "'");
  }
  return generator;
}

}  // namespace tensord::ops
