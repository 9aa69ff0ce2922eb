#include "server/config/log_sink.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <source_location>

#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/printable.h"

namespace tensord::server {
namespace {

// Atomics, because every log line reads them. The other settings are below, under the mutex.
enum class Form { kText, kTriton, kJson };
std::atomic<Form> form{Form::kText};
std::atomic<unsigned> written_levels{0xe};  // one bit per LogLevel
std::atomic<bool> are_requests_logged{false};

Mutex settings_mutex;
LogSettings current_settings;  // guarded by settings_mutex

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarning: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::info;
}

// Appends a JSON string. Clients choose some of the contents, so bytes that are not UTF-8 become U+FFFD and unprintable
// characters are escaped.
void append_quoted(std::string& out, std::string_view text) {
  using Json = nlohmann::json;
  out += to_printable_json(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace));
}

bool needs_quotes(std::string_view text) {
  if (text.empty()) return true;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte >= 0x7f || c == '"' || c == '=' || c == '\\') return true;
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

// Formats as RFC 3339: "2026-11-29T16:05:14.123456Z".
std::string utc_time(int64_t unix_us) {
  const time_t seconds = unix_us / 1'000'000;
  tm parts{};
  gmtime_r(&seconds, &parts);
  char text[40];
  const size_t size = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text + size, sizeof text - size, ".%06dZ", static_cast<int>(unix_us % 1'000'000));
  return text;
}

void append_json_value(std::string& out, const LogField& field) {
  if (field.kind == LogField::Kind::kBool) {
    out += field.value == "0" ? "false" : "true";
  } else if (field.kind == LogField::Kind::kNumber && field.value.find_first_of("in") == std::string::npos) {
    out += field.value;  // JSON has no inf and nan
  } else {
    append_quoted(out, field.value);
  }
}

std::string format_json(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  static constexpr const char* kNames[] = {"debug", "info", "warning", "error"};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  std::string line = concat("{\"time\":\"", utc_time(micros), "\",\"time_us\":", micros, ",\"level\":\"",
                            kNames[static_cast<int>(level)], "\",\"message\":");
  append_quoted(line, message);
  for (const LogField& field : fields) {
    line += ',';
    append_quoted(line, field.key);
    line += ':';
    append_json_value(line, field);
  }
  line += '}';
  return line;
}

// Appends "file.cpp:12] message …": the header of Triton's log lines ends with the source location.
std::string format_triton(std::string_view message, std::initializer_list<LogField> fields,
                          const std::source_location& where) {
  const std::string_view path = where.file_name();
  return concat(path.substr(path.rfind('/') + 1), ":", where.line(), "] ", format_text(message, fields));
}

std::string format(Form form, LogLevel level, std::string_view message, std::initializer_list<LogField> fields,
                   const std::source_location& where) {
  switch (form) {
    case Form::kJson: return format_json(level, message, fields);
    case Form::kTriton: return format_triton(message, fields, where);
    case Form::kText: break;
  }
  return format_text(message, fields);
}

void write(LogLevel level, std::string_view message, std::initializer_list<LogField> fields,
           const std::source_location& where) {
  if ((written_levels.load(std::memory_order_relaxed) >> static_cast<int>(level) & 1) == 0) return;
  const Form now = form;
  const std::string line = format(now, level, message, fields, where);
  // Triton has no letter for verbose lines and logs them as info.
  const LogLevel shown = now == Form::kTriton && level == LogLevel::kDebug ? LogLevel::kInfo : level;
  spdlog::default_logger_raw()->log(to_spdlog(shown), spdlog::string_view_t(line.data(), line.size()));
}

unsigned levels_of(const LogSettings& settings) {
  const auto bit = [](bool is_on, LogLevel level) { return is_on ? 1u << static_cast<int>(level) : 0u; };
  return bit(settings.verbose_level > 0, LogLevel::kDebug) | bit(settings.info, LogLevel::kInfo) |
         bit(settings.warning, LogLevel::kWarning) | bit(settings.error, LogLevel::kError);
}

const char* pattern_of(const std::string& format) {
  if (format == "json") return "%v";
  if (format == "default") return "%L%m%d %H:%M:%S.%f %P %v";
  return format == "ISO8601" ? "%Y-%m-%dT%H:%M:%SZ %L %P %v" : "%Y-%m-%dT%H:%M:%S.%f%z %l %v";
}

// REQUIRES: settings_mutex is held.
void apply(LogSettings settings) {
  form = settings.format == "json" ? Form::kJson : settings.format == "text" ? Form::kText : Form::kTriton;
  written_levels = levels_of(settings);
  are_requests_logged = settings.requests;
  const bool is_utc = settings.format == "ISO8601";
  spdlog::default_logger_raw()->set_pattern(pattern_of(settings.format),
                                            is_utc ? spdlog::pattern_time_type::utc : spdlog::pattern_time_type::local);
  current_settings = std::move(settings);
}

std::shared_ptr<spdlog::logger> make_logger(const std::string& file) {
  spdlog::drop("tensord");  // of an earlier call
  if (file.empty()) return spdlog::stderr_logger_mt("tensord");
  try {
    return spdlog::basic_logger_mt("tensord", file);
  } catch (const spdlog::spdlog_ex& error) {
    fail(ErrorCode::kUnavailable, "--log-file ", file, " cannot be written: ", error.what());
  }
}

}  // namespace

void install_log_sink(const LogSettings& settings) {
  validate(settings);
  auto logger = make_logger(settings.file);
  logger->set_level(spdlog::level::debug);  // written_levels filters instead
  logger->flush_on(spdlog::level::debug);
  spdlog::set_default_logger(std::move(logger));
  const MutexLock lock(settings_mutex);
  apply(settings);
  set_log_sink(write);
}

LogSettings log_settings() {
  const MutexLock lock(settings_mutex);
  return current_settings;
}

bool logs_requests() { return are_requests_logged.load(std::memory_order_relaxed); }

void change_log_settings(const std::function<void(LogSettings&)>& change) {
  const MutexLock lock(settings_mutex);
  LogSettings settings = current_settings;
  change(settings);
  settings.file = current_settings.file;
  validate(settings);
  apply(std::move(settings));
}

}  // namespace tensord::server
