// Included before the code of every source that has mutants (tests/mutants). A program contains many; TENSORD_SLIP is
// the number of the active one. TENSORD_SLIP_REACHED is a file with a byte for each mutant, which becomes 1 when the
// code is reached.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wsign-compare"

namespace tensord_mutant {

inline constexpr int kMax = 4096;

struct State {
  int made = 0;
  unsigned char* reached;

  State() {
    if (const char* number = std::getenv("TENSORD_SLIP")) made = std::atoi(number);
    static unsigned char nowhere[kMax];
    reached = nowhere;
    const char* path = std::getenv("TENSORD_SLIP_REACHED");
    const int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    void* bytes = mmap(nullptr, kMax, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);  // survives a crash of the program
    close(file);
    if (bytes != MAP_FAILED) reached = static_cast<unsigned char*>(bytes);
  }
};

// Whether mutant `number` is active. The state is never destroyed, since code runs before and after main.
inline bool on(int number) {
  static State& state = *new State;
  unsigned char* const mark = state.reached + number;
  if (__atomic_load_n(mark, __ATOMIC_RELAXED) == 0) __atomic_store_n(mark, 1, __ATOMIC_RELAXED);
  return state.made == number;
}

// `a < Compare<kind>{on(n)} > b` replaces `a < b`, with the same precedence.
enum Kind { kLess, kLessEqual, kGreater, kGreaterEqual };
template <Kind kind>
struct Compare {
  bool is_mutant;
};
template <Kind kind, class L>
struct Left {
  const L& value;
  bool is_mutant;
};
template <Kind kind, class L>
Left<kind, L> operator<(const L& value, Compare<kind> compare) {
  return {value, compare.is_mutant};
}
template <Kind kind, class L, class R>
bool operator>(const Left<kind, L>& left, const R& right) {
  constexpr bool kIsLess = kind == kLess || kind == kLessEqual,
                 kTakesEqual = kind == kLessEqual || kind == kGreaterEqual;
  const bool takes_equal = kTakesEqual != left.is_mutant;
  if constexpr (kIsLess) return takes_equal ? left.value <= right : left.value < right;
  if constexpr (!kIsLess) return takes_equal ? left.value >= right : left.value > right;
}

}  // namespace tensord_mutant
