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
  enum class Kind : uint8_t { kText, kNumber, kBool };  // the type of the value in JSON
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

// Sets the destination of log lines. The default (null) writes `level message key=value` to stderr; the daemon installs
// a sink that formats with spdlog. Call it before threads start.
void set_log_sink(LogSink sink);

// Thread-safe. `message` is a constant phrase; the fields hold the values that vary.
void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {},
         const std::source_location& where = std::source_location::current());

}  // namespace tensord
