#include "core/jit/archive/crc32.h"

#include <zlib.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace tensord::jit {
namespace {

// Continues from `crc` as zlib does.
uint32_t continue_crc(uint32_t crc, const char* data, size_t size) {
  return static_cast<uint32_t>(crc32_z(crc, reinterpret_cast<const Bytef*>(data), size));
}

#ifdef __x86_64__

// x^power modulo the polynomial, bit-reversed as in the CRC and shifted by one, because the product of two reversed
// numbers is one bit short.
constexpr int64_t power_of_x(int power) {
  uint32_t value = 0x80000000u;
  for (int i = 0; i < power; ++i) value = (value >> 1) ^ ((value & 1) != 0 ? 0xEDB88320u : 0);
  return static_cast<int64_t>(uint64_t{value} << 1);
}

// Multiplies the 128-bit polynomial by the powers of x in `factors` and adds `next`.
__attribute__((target("pclmul,sse4.1"))) __m128i fold(__m128i state, __m128i factors, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(state, factors, 0x00);
  const __m128i high = _mm_clmulepi64_si128(state, factors, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

__attribute__((target("pclmul,sse4.1"))) __m128i load(const char* data) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(data));
}

constexpr size_t kBlock = 64;

// REQUIRES: size is at least kBlock.
__attribute__((target("pclmul,sse4.1"))) uint32_t crc32_folded(const char* data, size_t size) {
  // Folding by n bits multiplies the lower half, whose bits have the higher powers, by x^(n+32) and the upper half by
  // x^(n-32).
  const __m128i by_block = _mm_set_epi64x(power_of_x(512 - 32), power_of_x(512 + 32));
  const __m128i by_16 = _mm_set_epi64x(power_of_x(128 - 32), power_of_x(128 + 32));
  __m128i s0 = _mm_xor_si128(load(data), _mm_cvtsi32_si128(-1));
  __m128i s1 = load(data + 16), s2 = load(data + 32), s3 = load(data + 48);
  const char* end = data + size;
  for (data += kBlock; data + kBlock <= end; data += kBlock) {
    s0 = fold(s0, by_block, load(data));
    s1 = fold(s1, by_block, load(data + 16));
    s2 = fold(s2, by_block, load(data + 32));
    s3 = fold(s3, by_block, load(data + 48));
  }
  s1 = fold(s0, by_16, s1);
  s2 = fold(s1, by_16, s2);
  s3 = fold(s2, by_16, s3);
  // These 16 bytes have the same remainder as all bytes before. zlib's CRC starts and ends inverted.
  alignas(16) char folded[16];
  _mm_store_si128(reinterpret_cast<__m128i*>(folded), s3);
  const uint32_t crc = continue_crc(0xFFFFFFFFu, folded, sizeof(folded));
  return continue_crc(crc, data, static_cast<size_t>(end - data));
}

bool can_fold() {
  static const bool can = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  return can;
}

#endif

}  // namespace

uint32_t crc32_of(const char* data, size_t size) {
#ifdef __x86_64__
  if (size >= kBlock && can_fold()) return crc32_folded(data, size);
#endif
  return continue_crc(0, data, size);
}

}  // namespace tensord::jit
