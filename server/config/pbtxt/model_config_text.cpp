#include "server/config/pbtxt/model_config_text.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/utf8.h"
#include "server/config/pbtxt/model_config_reader.h"

namespace tensord::server {
namespace {

constexpr int kMaxNesting = 32;
constexpr size_t kMaxSkipped = 5;  // unknown fields that are logged

class Collector final : public google::protobuf::io::ErrorCollector {
 public:
  explicit Collector(const std::string& origin) : origin_(origin) {}
  // The parser counts lines and columns from 0.
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (error.empty()) error = concat(origin_, ":", line + 1, ":", column + 1, ": ", message);
  }
  void AddWarning(int line, google::protobuf::io::ColumnNumber, const std::string& message) override {
    log(LogLevel::kWarning, "config field skipped", {{"file", origin_}, {"line", line + 1}, {"reason", message}});
    if (skipped.size() < kMaxSkipped)
      skipped.push_back(concat("config.pbtxt:", line + 1, ": ", message, " It is skipped"));
  }
  std::string error;
  std::vector<std::string> skipped;

 private:
  const std::string& origin_;
};

// Maximum bracket depth of a JSON document outside strings. Checked here because the JSON parser allows more.
int json_depth(const std::string& json) {
  int depth = 0, deepest = 0;
  bool is_string = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (is_string) {
      if (c == '\\') ++i;
      is_string = c != '"';
    } else if (c == '"') {
      is_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

// Throws for the first string that is not UTF-8, because responses could not carry it.
void check_texts(const google::protobuf::Message& message, const std::string& origin, const std::string& path = "") {
  using Field = google::protobuf::FieldDescriptor;
  const auto* reflection = message.GetReflection();
  std::vector<const Field*> fields;
  reflection->ListFields(message, &fields);
  std::string scratch;
  for (const Field* field : fields) {
    const std::string name = path + field->name();
    const int size = field->is_repeated() ? reflection->FieldSize(message, field) : 1;
    for (int i = 0; i < size; ++i) {
      if (field->cpp_type() == Field::CPPTYPE_MESSAGE) {
        check_texts(field->is_repeated() ? reflection->GetRepeatedMessage(message, field, i)
                                         : reflection->GetMessage(message, field),
                    origin, name + ".");
      } else if (field->type() == Field::TYPE_STRING) {
        check(is_utf8(field->is_repeated() ? reflection->GetRepeatedStringReference(message, field, i, &scratch)
                                           : reflection->GetStringReference(message, field, &scratch)),
              origin, ": ", name, " is not UTF-8");
      }
    }
  }
}

}  // namespace

ModelConfig parse_model_config(const std::string& text, const std::string& origin, std::vector<std::string>* unknown) {
  Collector collector(origin);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  parser.AllowUnknownField(true);
  parser.AllowUnknownExtension(true);
  parser.SetRecursionLimit(kMaxNesting);
  inference::ModelConfig message;
  if (!parser.ParseFromString(text, &message)) {
    fail(ErrorCode::kInvalidArgument, collector.error.empty() ? concat(origin, ": malformed") : collector.error);
  }
  check_texts(message, origin);
  if (unknown != nullptr) *unknown = std::move(collector.skipped);
  return read_model_config(message, origin);
}

ModelConfig parse_model_config_json(const std::string& json, const std::string& origin) {
  check(json_depth(json) <= kMaxNesting, origin, ": nested deeper than ", kMaxNesting);
  inference::ModelConfig message;
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  const auto status = google::protobuf::util::JsonStringToMessage(json, &message, options);
  check(status.ok(), origin, ": ", std::string(status.message()));
  check_texts(message, origin);
  return read_model_config(message, origin);
}

}  // namespace tensord::server
