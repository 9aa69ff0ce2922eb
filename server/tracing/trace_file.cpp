#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/base/log.h"
#include "server/tracing/trace_exporter.h"

namespace tensord::server {
namespace {

using Json = nlohmann::json;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// Writes numeric versions as numbers, as Triton does.
Json version_of(const std::string& text) {
  const bool is_number = !text.empty() && text.size() < 18 && text.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? Json(std::stoll(text)) : Json(text);
}

// IDs and strings of clients may be invalid UTF-8.
std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// The JSON objects of one trace, separated by commas.
std::string to_text(const TraceRecord& record) {
  Json head{{"id", record.id}, {"model_name", record.model}, {"model_version", version_of(record.version)}};
  if (!record.request_id.empty()) head["request_id"] = record.request_id;
  if (record.parent_id != 0) head["parent_id"] = record.parent_id;
  std::string text = dump(head);
  for (const TraceRecord::TensorText& tensor : record.tensors) {
    text +=
        ',' +
        dump({{"id", record.id},
              {"activity", tensor.activity},
              {"tensor",
               {{"name", tensor.name}, {"data", tensor.data}, {"shape", tensor.shape}, {"dtype", tensor.datatype}}}});
  }
  if (!record.stamps.empty()) {
    Json stamps = Json::array();
    for (const TraceRecord::Stamp& stamp : record.stamps) stamps.push_back({{"name", stamp.name}, {"ns", stamp.ns}});
    text += ',' + dump({{"id", record.id}, {"timestamps", std::move(stamps)}});
  }
  return text;
}

class FileSink final : public TraceSink {
 public:
  explicit FileSink(std::string file) : name_(std::move(file)) {
    if (name_.empty()) return;
    // Fails at startup instead of with the first trace.
    file_.reset(std::fopen(name_.c_str(), "we"));
    if (!file_) fail(ErrorCode::kUnavailable, "the trace file ", name_, " cannot be written: ", std::strerror(errno));
    write_whole("[]");
  }

  void write(std::vector<TraceRecord> records) override {
    if (name_.empty()) return;
    std::string text;
    for (const TraceRecord& record : records) {
      const uint32_t frequency = record.settings.log_frequency;
      if (frequency > 0) {
        std::vector<std::string>& group = groups_[record.scope];
        group.push_back(to_text(record));
        if (group.size() >= frequency || group.size() >= kMaxGroup) write_group(group);
      } else {
        if (!is_empty_ || !text.empty()) text += ',';
        (text += to_text(record)) += '\n';
      }
    }
    if (!text.empty()) append(text);
  }

  void finish() override {
    for (auto& [scope, group] : groups_) {
      if (!group.empty()) write_group(group);
    }
  }

 private:
  static constexpr size_t kMaxGroup = 100'000;  // traces buffered for one file

  // Overwrites the closing bracket of the JSON array, so that the file is always complete.
  void append(const std::string& text) {
    std::fseek(file_.get(), -1, SEEK_END);
    is_empty_ = false;
    write_whole(text + ']');
  }

  void write_whole(const std::string& text) {
    const bool is_written =
        std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size() && std::fflush(file_.get()) == 0;
    if (!is_written) report(name_);
  }

  void write_group(std::vector<std::string>& group) {
    std::string text = "[";
    for (const std::string& trace : group) {
      if (text.size() > 1) text += ",\n";
      text += trace;
    }
    text += "]";
    group.clear();
    const std::string name = concat(name_, ".", next_index_++);
    const File file(std::fopen(name.c_str(), "we"));
    const bool is_written =
        file && std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() && std::fflush(file.get()) == 0;
    if (!is_written) report(name);
  }

  static void report(const std::string& name) {
    log(LogLevel::kError, "traces cannot be written", {{"file", name}, {"reason", std::strerror(errno)}});
  }

  const std::string name_;
  File file_;
  bool is_empty_ = true;  // no trace was written yet
  uint64_t next_index_ = 0;
  std::map<std::string, std::vector<std::string>> groups_;  // by the trace file at their time
};

}  // namespace

std::unique_ptr<TraceSink> make_file_sink(const std::string& file) { return std::make_unique<FileSink>(file); }

}  // namespace tensord::server
