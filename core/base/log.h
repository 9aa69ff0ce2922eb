#pragma once

#include <cstdint>
#include <initializer_list>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/base/error.h"

namespace tensord {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

// One key=value pair of a log line.
struct LogField {
  enum class Kind : uint8_t { kText, kNumber, kBool };  // what the value is in JSON
  std::string_view key;
  std::string value;
  Kind kind;
  template <class T>
  LogField(std::string_view key, const T& value)
      : key(key),
        value(concat(value)),
        kind(std::is_same_v<T, bool>                               ? Kind::kBool
             : std::is_arithmetic_v<T> && !std::is_same_v<T, char> ? Kind::kNumber
                                                                   : Kind::kText) {}
};

using LogSink = void (*)(LogLevel, std::string_view message, std::initializer_list<LogField>,
                         const std::source_location& where);

// Where log lines go; the default writes `level message key=value` to stderr.
// The daemon installs one that formats through spdlog; null is the default. Call before threads start.
void set_log_sink(LogSink sink);

// Thread-safe. `message` is a constant phrase; what varies goes into the fields.
void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {},
         const std::source_location& where = std::source_location::current());

}  // namespace tensord
