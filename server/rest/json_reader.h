#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "server/rest/call_charge.h"

namespace tensord::server {

// Reads JSON where it lies, value by value, and keeps nothing: what a caller does not take is checked and skipped.
// Every fault is an Error{kInvalidArgument} that says where it is. Nesting is at most 100 deep, names of members have
// at most 64 KB, numbers 4 KB. Texts are charged before they are made; once nobody waits for the request it stops.
class JsonReader {
 public:
  // `what`: how messages begin. `text` and `charge` must outlive this.
  explicit JsonReader(std::string_view text, const CallCharge* charge = nullptr,
                      std::string what = "failed to parse the request JSON buffer")
      : text_(text), charge_(charge), what_(std::move(what)) {}

  enum class Kind { kObject, kArray, kString, kNumber, kBool, kNull };
  Kind peek();  // of the next value

  // Calls `member(key)` for each, which has to take the value.
  void object(const std::function<void(const std::string& key)>& member);
  // Calls `element()` for each, which has to take it.
  template <class Element>
  void array(const Element& element) {
    expect_kind('[');
    enter();
    if (!take(']')) {
      do {
        element();
      } while (next_element());
    }
    --depth_;
  }
  std::string string();
  std::string_view number();  // its text, as it stands there; also NaN, Infinity and -Infinity
  bool boolean();
  void null();
  // Takes a value, whatever it is; gives back its text. `elements` grows by what is no array, however arrays are
  // nested.
  std::string_view skip(int64_t* elements = nullptr);
  // After the last value only white space may be left.
  void finish();

  [[noreturn]] void fail_here(std::string_view reason) const;

 private:
  void skip_space();
  void look();
  std::string text_until(size_t end);
  std::string member_name();
  size_t text_end() const;
  bool take(char wanted);
  bool next_element();
  void expect_kind(char wanted);
  void enter();
  void take_word(std::string_view word);
  void skip_string();
  uint32_t escaped_unit();
  void append_escape(std::string& out);

  std::string_view text_;
  const CallCharge* charge_;
  std::string what_;
  size_t look_at_ = 0;  // whether anybody waits is asked there
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace tensord::server
