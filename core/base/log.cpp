#include "core/base/log.h"

#include <atomic>
#include <cstdio>

#include "core/base/printable.h"

namespace tensord {
namespace {

void write_stderr(LogLevel level, std::string_view message, std::initializer_list<LogField> fields,
                  const std::source_location&) {
  static constexpr const char* kNames[] = {"debug", "info", "warning", "error"};
  if (level == LogLevel::kDebug) return;
  std::string line = concat(kNames[static_cast<int>(level)], " ", message);
  for (const LogField& field : fields) line += concat(" ", field.key, "=", to_printable(field.value));
  line += '\n';
  std::fputs(line.c_str(), stderr);
}

std::atomic<LogSink> sink{write_stderr};

}  // namespace

void set_log_sink(LogSink new_sink) { sink = new_sink ? new_sink : write_stderr; }

void log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields,
         const std::source_location& where) {
  sink.load()(level, message, fields, where);
}

}  // namespace tensord
