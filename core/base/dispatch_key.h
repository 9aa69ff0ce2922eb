#pragma once

#include <bit>
#include <cstdint>

namespace tensord {

// What a call of an operator may have to go through, in the order in which it goes: the highest first. The layouts come
// from the tensors of the call, autograd's from the tensors too, the others from scopes of the calling thread. As c10's
// functionalities; the dtype is not one of them, but for complex numbers, whose code is nearly always other code.
enum class Functionality : uint8_t {
  // Layouts: one kernel for each device.
  kDense,             // strided memory of real numbers
  kComplex,           // strided memory of complex numbers
  kQuantized,         // integers with a scale and a zero point
  kSparse,            // COO
  kSparseCompressed,  // CSR, CSC, BSR, BSC
  // One kernel for all devices.
  kShapeInference,   // of tensors without data, in a scope
  kStepRecorder,     // sees what is computed, below autograd, in a scope
  kADInplaceOrView,  // tracks views and writes; of every tensor that was not made in inference mode
  kAutograd,         // of tensors that autograd knows
  kTracer,           // sees what is called, above autograd, in a scope
  kAutocast,         // casts arguments to the operator's precision, in a scope
};
inline constexpr int kLayoutCount = 5;
inline constexpr int kFunctionalityCount = 11;

// A set of functionalities: what a tensor has, what a call has to go through, what a thread adds or leaves out.
class DispatchKeySet {
 public:
  constexpr DispatchKeySet() = default;
  constexpr DispatchKeySet(Functionality one) : bits_(static_cast<uint16_t>(1u << static_cast<int>(one))) {}
  static constexpr DispatchKeySet from_bits(unsigned bits) {
    DispatchKeySet set;
    set.bits_ = static_cast<uint16_t>(bits);
    return set;
  }

  constexpr bool has(Functionality one) const { return (bits_ & DispatchKeySet(one).bits_) != 0; }
  constexpr bool has_any(DispatchKeySet set) const { return (bits_ & set.bits_) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  // REQUIRES: !empty().
  constexpr Functionality highest() const { return static_cast<Functionality>(std::bit_width(bits_) - 1); }
  // Those that come after `one` in a call.
  static constexpr DispatchKeySet below(Functionality one) { return from_bits((1u << static_cast<int>(one)) - 1); }

  friend constexpr DispatchKeySet operator|(DispatchKeySet a, DispatchKeySet b) {
    return from_bits(a.bits_ | unsigned{b.bits_});
  }
  friend constexpr DispatchKeySet operator&(DispatchKeySet a, DispatchKeySet b) {
    return from_bits(a.bits_ & unsigned{b.bits_});
  }
  friend constexpr DispatchKeySet operator-(DispatchKeySet a, DispatchKeySet b) {
    return from_bits(a.bits_ & ~unsigned{b.bits_});
  }
  constexpr DispatchKeySet& operator|=(DispatchKeySet set) { return *this = *this | set; }
  constexpr bool operator==(const DispatchKeySet&) const = default;

 private:
  uint16_t bits_ = 0;
};

constexpr DispatchKeySet operator|(Functionality a, Functionality b) { return DispatchKeySet(a) | DispatchKeySet(b); }

inline constexpr DispatchKeySet kLayoutKeys = DispatchKeySet::from_bits((1u << kLayoutCount) - 1);
inline constexpr DispatchKeySet kAutogradKeys = Functionality::kADInplaceOrView | Functionality::kAutograd;
// What scopes add for one thread alone: observers are not told of what other threads do for it.
inline constexpr DispatchKeySet kThreadKeys = Functionality::kStepRecorder | Functionality::kTracer;
// Layouts whose kernels call operators of the tensors' parts: these are recorded, the call itself is not.
inline constexpr DispatchKeySet kCompoundLayouts =
    Functionality::kQuantized | Functionality::kSparse | DispatchKeySet(Functionality::kSparseCompressed);

// "Dense", "SparseCSR", "Autograd".
const char* name_of(Functionality functionality);

}  // namespace tensord
