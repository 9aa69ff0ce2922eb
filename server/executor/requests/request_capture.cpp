#include "server/executor/requests/request_capture.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <ctime>
#include <filesystem>

#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "server/executor/model/unsigned_widening.h"

namespace tensord::server {
namespace {

// Records queued for the disk; further ones are dropped.
constexpr uint64_t kMaxWaitingBytes = uint64_t{64} << 20;
// Larger requests are not captured.
constexpr uint64_t kMaxRequestBytes = uint64_t{32} << 20;

uint64_t bytes_of(const InferRequest& request) {
  uint64_t bytes = 0;
  for (const InferTensor& input : request.inputs) {
    if (input.tensor.defined()) bytes += input.tensor.size_bytes();
    if (input.scattered) {
      for (const auto& piece : input.scattered->pieces) bytes += piece.size();
    }
    for (const std::string& text : input.strings) bytes += text.size() + 4;
  }
  return bytes;
}

std::string file_name(std::string model) {
  std::replace(model.begin(), model.end(), '/', '_');
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof(text), "%Y%m%dT%H%M%S", &utc);
  return concat(model, "-", text, ".requests");
}

void report_failure(const std::string& model, const std::string& folder) {
  log(LogLevel::kError, "captured requests cannot be written", {{"model", model}, {"folder", folder}});
}

}  // namespace

void CapturedRequest::add_outputs(const std::vector<InferTensor>& outputs) {
  if (!capture_.options_.has_outputs) return;
  for (const InferTensor& output : outputs) writer_.add_output(output);
}

void CapturedRequest::keep() { capture_.add(model_, writer_.finish()); }

RequestCapture::RequestCapture(CaptureOptions options) : options_(std::move(options)) {
  if (!is_on()) return;
  std::error_code error;
  std::filesystem::create_directories(options_.folder, error);
  if (error) {
    fail(ErrorCode::kUnavailable, "--capture-dir ", options_.folder, " cannot be made: ", error.message());
  }
  thread_ = Thread("capture", [this] { work(); });
}

RequestCapture::~RequestCapture() { stop(); }

std::shared_ptr<CapturedRequest> RequestCapture::sample(const std::string& model, const std::string& version,
                                                        const Signature& signature, const InferRequest& request) {
  const auto& wanted = options_.models;
  if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), model) == wanted.end()) return nullptr;
  {
    const MutexLock lock(mutex_);
    Model& counts = models_[model];
    if (counts.requests >= options_.max_requests || counts.bytes >= options_.max_bytes) return nullptr;
    if (counts.seen++ % options_.rate != 0 || is_stopped_) return nullptr;
  }
  if (bytes_of(request) > kMaxRequestBytes) return nullptr;
  using namespace std::chrono;
  const int64_t now_us = duration_cast<microseconds>(system_clock::now().time_since_epoch()).count();
  RecordWriter writer(model, version, request.id, now_us);
  for (size_t i = 0; i < request.inputs.size(); ++i) {
    const InferTensor& input = request.inputs[i];
    const std::optional<DataType>& sent = signature.inputs.at(request.input_indices.at(i)).datatype;
    writer.add_input(input, sent.value_or(input.datatype));
  }
  return std::make_shared<CapturedRequest>(*this, model, std::move(writer));
}

void RequestCapture::add(const std::string& model, std::string record) {
  const MutexLock lock(mutex_);
  Model& counts = models_[model];
  const bool has_room = counts.requests < options_.max_requests && counts.bytes + record.size() <= options_.max_bytes;
  if (is_stopped_ || !has_room) return;
  if (waiting_bytes_ + record.size() > kMaxWaitingBytes) {
    // Logs at powers of two, so that a slow disk does not flood the log.
    ++dropped_;
    if (std::has_single_bit(dropped_)) log(LogLevel::kWarning, "requests were not kept", {{"count", dropped_}});
    return;
  }
  ++counts.requests;
  counts.bytes += record.size();
  waiting_bytes_ += record.size();
  waiting_.push_back({model, std::move(record)});
  changed_.notify_all();
}

void RequestCapture::work() {
  MutexLock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this]() TENSORD_REQUIRES(mutex_) { return is_stopped_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const Waiting waiting = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= waiting.record.size();
    Model& model = models_[waiting.model];  // map nodes do not move
    const bool is_last = waiting_.empty();
    lock.unlock();
    run_logged("capture", [&] {
      write(waiting, model);
      if (!is_last || model.is_failed || model.file.flush()) return;
      model.is_failed = true;
      report_failure(waiting.model, options_.folder);
    });
    lock.lock();
  }
}

void RequestCapture::write(const Waiting& waiting, Model& model) {
  if (model.is_failed) return;
  if (!model.file.is_open()) {
    const auto path = std::filesystem::path(options_.folder) / file_name(waiting.model);
    model.file.open(path, std::ios::binary);
    model.file << recorded_requests_magic();
  }
  model.file.write(waiting.record.data(), static_cast<std::streamsize>(waiting.record.size()));
  if (model.file) return;
  model.is_failed = true;
  report_failure(waiting.model, options_.folder);
}

void RequestCapture::stop() {
  {
    const MutexLock lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (auto& [name, model] : models_) model.file.close();
}

}  // namespace tensord::server
