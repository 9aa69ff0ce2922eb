#pragma once

#include <cstdint>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "core/base/mutex.h"
#include "core/base/thread.h"
#include "server/config/capture_options.h"
#include "server/executor/requests/recorded_requests.h"
#include "server/executor/requests/request.h"

namespace tensord::server {

class RequestCapture;

// A request that is being kept: its inputs now, its outputs when they are there. For one thread at a time.
class CapturedRequest {
 public:
  CapturedRequest(RequestCapture& capture, std::string model, RecordWriter writer)
      : capture_(capture), model_(std::move(model)), writer_(std::move(writer)) {}
  void add_outputs(const std::vector<InferTensor>& outputs);
  // It was answered well: goes to the file. Without this call it is forgotten.
  void keep();

 private:
  RequestCapture& capture_;
  const std::string model_;
  RecordWriter writer_;
};

// Keeps samples of requests in files (recorded_requests.h), <folder>/<model>-<time of the first>.requests. A thread
// of its own writes them; requests never wait for the disk. Thread-safe.
class RequestCapture {
 public:
  // Makes the folder. Throws Error{kUnavailable} when that cannot be.
  explicit RequestCapture(CaptureOptions options);
  ~RequestCapture();  // stops

  bool is_on() const { return !options_.folder.empty(); }
  // Null when this request is not kept.
  std::shared_ptr<CapturedRequest> start(const std::string& model, const std::string& version,
                                         const Signature& signature, const InferRequest& request) {
    return is_on() ? sample(model, version, signature, request) : nullptr;
  }
  // Writes what was captured; nothing is kept afterwards.
  void stop();

 private:
  friend class CapturedRequest;
  struct Model {
    uint64_t seen = 0;      // requests
    uint64_t requests = 0;  // kept
    uint64_t bytes = 0;
    std::ofstream file;  // of the thread alone
    bool is_failed = false;
  };
  struct Waiting {
    std::string model;
    std::string record;
  };
  std::shared_ptr<CapturedRequest> sample(const std::string& model, const std::string& version,
                                          const Signature& signature, const InferRequest& request);
  void add(const std::string& model, std::string record);
  void work();
  void write(const Waiting& waiting, Model& model);

  const CaptureOptions options_;
  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, Model> models_;  // by mutex_, but the files
  std::deque<Waiting> waiting_ TENSORD_GUARDED_BY(mutex_);
  uint64_t waiting_bytes_ TENSORD_GUARDED_BY(mutex_) = 0;
  uint64_t dropped_ TENSORD_GUARDED_BY(mutex_) = 0;
  bool is_stopped_ TENSORD_GUARDED_BY(mutex_) = false;
  Thread thread_;  // last: it uses the rest
};

}  // namespace tensord::server
