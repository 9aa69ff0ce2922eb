// Included before the code of every source that `undetectable.py` checks. TENSORD_DIFFERENCES is a file with a byte for
// each mutant: kReached if the code was reached, and also kDiffers if the mutant would have changed a value there.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>

#pragma GCC diagnostic ignored "-Wparentheses"
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wunused-value"

namespace tensord_mutant {

inline constexpr int kMax = 1 << 16;
enum Mark : unsigned char { kReached = 1, kDiffers = 3 };

inline unsigned char* open_marks() {
  static unsigned char nowhere[kMax];
  const char* path = std::getenv("TENSORD_DIFFERENCES");
  const int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
  if (file < 0) return nowhere;
  void* bytes = mmap(nullptr, kMax, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);  // survives a crash of the program
  close(file);
  return bytes == MAP_FAILED ? nowhere : static_cast<unsigned char*>(bytes);
}

inline unsigned char* marks = open_marks();  // null while constructors of other sources run before main

constexpr void note(int mutant, bool differs) {
  if (__builtin_is_constant_evaluated() || !marks) return;
  const unsigned char mark = differs ? kDiffers : kReached;
  if ((__atomic_load_n(marks + mutant, __ATOMIC_RELAXED) & mark) != mark)
    __atomic_fetch_or(marks + mutant, mark, __ATOMIC_RELAXED);
}

constexpr int reach(int mutant) {
  note(mutant, true);
  return 0;
}

// A condition that a mutant fixes to the other value; the mutant differs if the condition is `other`.
template <int mutant, bool other, class T>
constexpr bool see(const T& condition) {
  const bool value = static_cast<bool>(condition);
  note(mutant, value == other);
  return value;
}

// Lives around a check: the mutant differs if the check throws.
class Watch {
 public:
  explicit Watch(int mutant) : mutant_(mutant), exceptions_(std::uncaught_exceptions()) { note(mutant, false); }
  ~Watch() { note(mutant_, std::uncaught_exceptions() > exceptions_); }

 private:
  int mutant_, exceptions_;
};

// `a < Compare<kind, mutant>{} > b` replaces `a < b`, with the same precedence.
enum Kind { kLess, kLessEqual, kGreater, kGreaterEqual };
template <Kind kind, int mutant>
struct Compare {};
template <Kind kind, int mutant, class L>
struct Left {
  const L& value;
};
template <Kind kind, int mutant, class L>
constexpr Left<kind, mutant, L> operator<(const L& value, Compare<kind, mutant>) {
  return {value};
}
template <Kind kind, int mutant, class L, class R>
constexpr bool operator>(const Left<kind, mutant, L>& left, const R& right) {
  if constexpr (kind == kLess || kind == kLessEqual) {
    const bool less = left.value < right, less_equal = left.value <= right;
    note(mutant, less != less_equal);
    return kind == kLess ? less : less_equal;
  } else {
    const bool greater = left.value > right, greater_equal = left.value >= right;
    note(mutant, greater != greater_equal);
    return kind == kGreater ? greater : greater_equal;
  }
}

// `std::min` and `std::max`: one mutant keeps only the first operand, another only the second.
template <bool is_min, int first, int second>
struct Clamp {
  template <class T>
  static constexpr const T& of(const T& a, const T& b) {
    note(first, is_min ? b < a : a < b);
    note(second, is_min ? a < b : b < a);
    return is_min ? (b < a ? b : a) : (a < b ? b : a);
  }
};

}  // namespace tensord_mutant
