#include "server/rest/rest_status.h"

#include <algorithm>

#include "core/base/utf8.h"
#include "server/executor/requests/status.h"
#include "server/rest/json_data.h"
#include "server/transport/grpc/wire_reader.h"

namespace tensord::server {
namespace {

int http_status(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk: return 200;
    case absl::StatusCode::kInternal: return 500;
    case absl::StatusCode::kNotFound: return 404;
    case absl::StatusCode::kUnimplemented: return 501;
    case absl::StatusCode::kUnauthenticated: return 401;
    case absl::StatusCode::kPermissionDenied: return 403;
    case absl::StatusCode::kResourceExhausted: return 429;
    // A retry, or another replica, may succeed.
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded: return 503;
    default: return 400;
  }
}

}  // namespace

HttpAnswer json_answer(std::string json) {
  HttpAnswer answer;
  answer.type = "application/json";
  answer.body.push_back({std::move(json)});
  return answer;
}

HttpAnswer error_answer(int status, std::string_view text) {
  AnswerText json;
  json += "{\"error\":";
  // A model's script may raise a message with arbitrary bytes.
  std::string plain(text);
  if (!is_utf8(plain)) {
    std::replace_if(
        plain.begin(), plain.end(), [](char byte) { return byte < 0; }, '?');
  }
  write_json_string(plain, json);
  json += '}';
  HttpAnswer answer = json_answer(json.text());
  answer.status = status;
  return answer;
}

HttpAnswer error_answer(const absl::Status& status) {
  const int code = is_too_large(status) ? 413 : http_status(status.code());
  HttpAnswer answer = error_answer(code, {status.message().data(), status.message().size()});
  if (status.code() == absl::StatusCode::kUnauthenticated) {
    answer.headers.push_back({"WWW-Authenticate", "Basic realm=\"tensord\", charset=\"UTF-8\""});
  }
  if (answer.status == 429) answer.headers.push_back({"Retry-After", "1"});
  return answer;
}

}  // namespace tensord::server
