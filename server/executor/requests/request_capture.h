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

// A request that is being captured: its inputs now, its outputs when they are available. Not thread-safe.
class CapturedRequest {
 public:
  CapturedRequest(RequestCapture& capture, std::string model, RecordWriter writer)
      : capture_(capture), model_(std::move(model)), writer_(std::move(writer)) {}
  void add_outputs(const std::vector<InferTensor>& outputs);
  // Writes the request to the file. Not called, the request is dropped.
  void keep();

 private:
  RequestCapture& capture_;
  const std::string model_;
  RecordWriter writer_;
};

// Captures a sample of the requests in files <folder>/<model>-<time of the first>.requests (recorded_requests.h). A
// thread of its own writes them, so requests never wait for the disk. Thread-safe.
class RequestCapture {
 public:
  // Creates the folder. Throws Error{kUnavailable} if that fails.
  explicit RequestCapture(CaptureOptions options);
  ~RequestCapture();  // calls stop()

  bool is_on() const { return !options_.folder.empty(); }
  // Null if this request is not captured.
  std::shared_ptr<CapturedRequest> start(const std::string& model, const std::string& version,
                                         const Signature& signature, const InferRequest& request) {
    return is_on() ? sample(model, version, signature, request) : nullptr;
  }
  // Writes the captured requests and ends the capture.
  void stop();

 private:
  friend class CapturedRequest;
  struct Model {
    uint64_t seen = 0;      // requests seen
    uint64_t requests = 0;  // requests captured
    uint64_t bytes = 0;
    std::ofstream file;  // used by the thread only
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
  std::map<std::string, Model> models_;  // guarded by mutex_, except for the files
  std::deque<Waiting> waiting_ TENSORD_GUARDED_BY(mutex_);
  uint64_t waiting_bytes_ TENSORD_GUARDED_BY(mutex_) = 0;
  uint64_t dropped_ TENSORD_GUARDED_BY(mutex_) = 0;
  bool is_stopped_ TENSORD_GUARDED_BY(mutex_) = false;
  Thread thread_;  // last: it uses the other members
};

}  // namespace tensord::server
