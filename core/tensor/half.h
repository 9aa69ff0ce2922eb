#pragma once

#include <bit>
#include <cstdint>

#if defined(__CUDACC__)
#define TENSORD_HOST_DEVICE __host__ __device__
#else
#define TENSORD_HOST_DEVICE
#endif

namespace tensord {

// IEEE binary16, stored only; arithmetic happens in float.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  TENSORD_HOST_DEVICE Half(float value) : bits(from_float(value)) {}
  TENSORD_HOST_DEVICE operator float() const { return to_float(bits); }

  // Rounds to nearest even, as IEEE 754 does; an overflow gives infinity.
  TENSORD_HOST_DEVICE static uint16_t from_float(float value) {
    const uint32_t x = __builtin_bit_cast(uint32_t, value);
    const uint32_t sign = (x >> 16) & 0x8000u;
    const uint32_t magnitude = x & 0x7fffffffu;
    if (magnitude >= 0x7f800000u) {
      return static_cast<uint16_t>(sign | 0x7c00u | (magnitude > 0x7f800000u ? 0x200u : 0u));
    }
    if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);
    if (magnitude < 0x38800000u) {  // subnormal half: let the FPU round at 2^-24
      const float scaled = __builtin_bit_cast(float, magnitude) + 0.5f;
      return static_cast<uint16_t>(sign | (__builtin_bit_cast(uint32_t, scaled) - 0x3f000000u));
    }
    const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return static_cast<uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
  }
  TENSORD_HOST_DEVICE static float to_float(uint16_t bits) {
    const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
    const uint32_t exponent = (bits >> 10) & 0x1fu;
    const uint32_t mantissa = bits & 0x3ffu;
    if (exponent == 0x1f) return __builtin_bit_cast(float, sign | 0x7f800000u | (mantissa << 13));
    if (exponent != 0) {
      return __builtin_bit_cast(float, sign | ((exponent + 112) << 23) | (mantissa << 13));
    }
    const float small = static_cast<float>(mantissa) * 5.9604644775390625e-8f;  // 2^-24
    return __builtin_bit_cast(float, sign | __builtin_bit_cast(uint32_t, small));
  }
};

// The upper half of a float32, stored only; arithmetic happens in float.
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  TENSORD_HOST_DEVICE BFloat16(float value) : bits(from_float(value)) {}
  TENSORD_HOST_DEVICE operator float() const { return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16); }
  TENSORD_HOST_DEVICE static uint16_t from_float(float value) {
    const uint32_t x = __builtin_bit_cast(uint32_t, value);
    if ((x & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((x >> 16) | 0x40u);
    return static_cast<uint16_t>((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
  }
};

static_assert(sizeof(Half) == 2 && sizeof(BFloat16) == 2);

}  // namespace tensord
