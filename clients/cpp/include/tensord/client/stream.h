#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tensord/client/request.h"

namespace tensord::client {

struct StreamResult {
  std::string error;  // empty: the request went well
  Result result;      // after an error only its id
  bool is_ok() const { return error.empty(); }
};

// An open ModelStreamInfer call. One thread may send while another receives.
class Stream {
 public:
  ~Stream();  // cancels what is under way
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;

  // Returns when the request is on its way; waits while the server takes no more. Throws Error when the stream has
  // ended.
  void send(const Request& request);
  // Waits for the next result. Nothing: the stream has ended well. Throws Error when it failed. At most a few results
  // are read ahead, then the server is held back.
  std::optional<StreamResult> receive();
  // No more requests; results of those sent still come.
  void finish_sending();
  void cancel();

  struct Impl;
  explicit Stream(std::shared_ptr<Impl> impl);

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace tensord::client
