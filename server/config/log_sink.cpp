#include "server/config/log_sink.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>

#include "core/base/log.h"

namespace tensord::server {
namespace {

bool as_json = false;

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::info;
}

// Quotes and escapes; valid as a JSON string as long as the text is UTF-8.
void append_quoted(std::string& out, std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20) {
      ((out += "\\u00") += kHex[byte >> 4]) += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

bool needs_quotes(std::string_view text) {
  if (text.empty()) return true;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= 0x20 || c == '"' || c == '=' || c == '\\') return true;
  }
  return false;
}

std::string format_text(std::string_view message, std::initializer_list<LogField> fields) {
  std::string line(message);
  for (const LogField& field : fields) {
    ((line += ' ') += field.key) += '=';
    if (needs_quotes(field.value)) {
      append_quoted(line, field.value);
    } else {
      line += field.value;
    }
  }
  return line;
}

std::string format_json(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  static constexpr const char* kNames[] = {"debug", "info", "warning", "error"};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  std::string line =
      concat("{\"time_us\":", micros, ",\"level\":\"", kNames[static_cast<int>(level)], "\",\"message\":");
  append_quoted(line, message);
  for (const LogField& field : fields) {
    line += ',';
    append_quoted(line, field.key);
    line += ':';
    append_quoted(line, field.value);
  }
  line += '}';
  return line;
}

void write(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  spdlog::logger* logger = spdlog::default_logger_raw();
  const auto spd_level = to_spdlog(level);
  if (!logger->should_log(spd_level)) return;
  const std::string line = as_json ? format_json(level, message, fields) : format_text(message, fields);
  logger->log(spd_level, spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace

void install_log_sink(const std::string& format, bool is_verbose) {
  as_json = format == "json";
  auto logger = spdlog::stderr_logger_mt("tensord");
  logger->set_pattern(as_json ? "%v" : "%Y-%m-%dT%H:%M:%S.%f %l %v");
  logger->set_level(is_verbose ? spdlog::level::debug : spdlog::level::info);
  logger->flush_on(spdlog::level::debug);
  spdlog::set_default_logger(std::move(logger));
  set_log_sink(write);
}

}  // namespace tensord::server
