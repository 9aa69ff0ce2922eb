#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "server/rest/call_charge.h"

namespace tensord::server {

// A pull parser for JSON. It keeps nothing: values that the caller does not read are validated and skipped. Every error
// is an Error{kInvalidArgument} that names the position. Nesting is limited to 100 levels, member names to 64 KB and
// numbers to 4 KB. Strings are charged before they are allocated. Parsing stops once the client has disconnected.
class JsonReader {
 public:
  // `what` is the prefix of error messages. `text` and `charge` must outlive this object.
  explicit JsonReader(std::string_view text, const CallCharge* charge = nullptr,
                      std::string what = "failed to parse the request JSON buffer")
      : text_(text), charge_(charge), what_(std::move(what)) {}

  enum class Kind { kObject, kArray, kString, kNumber, kBool, kNull };
  Kind peek();  // kind of the next value

  // Calls `member(key)` for each member; it must consume the value.
  void object(const std::function<void(const std::string& key)>& member);
  // Calls `element()` for each element; it must consume the element.
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
  std::string_view number();  // its source; NaN, Infinity and -Infinity are accepted
  bool boolean();
  void null();
  // Skips one value of any kind and returns its source. `elements` is increased by the number of scalars in it, at any
  // nesting.
  std::string_view skip(int64_t* elements = nullptr);
  // Checks that only white space follows the last value.
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
  size_t look_at_ = 0;  // offset of the next check for cancellation
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace tensord::server
