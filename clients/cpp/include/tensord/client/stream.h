#pragma once

#include <memory>
#include <optional>
#include <string>

#include "tensord/client/request.h"

namespace tensord::client {

struct StreamResult {
  std::string error;  // empty: success
  Result result;      // after an error, only its id is set
  bool is_ok() const { return error.empty(); }
};

// An open ModelStreamInfer call. One thread may send while another one receives.
class Stream {
 public:
  ~Stream();  // cancels running requests
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;

  // Returns when the request is sent; blocks while the server accepts no more. Throws Error if the stream has ended.
  void send(const Request& request);
  // Waits for the next result. None: the stream has ended. Throws Error if it failed. Only a few results are buffered;
  // then the server is held back.
  std::optional<StreamResult> receive();
  // Ends the requests; results can still be received.
  void finish_sending();
  void cancel();

  struct Impl;
  explicit Stream(std::shared_ptr<Impl> impl);

 private:
  std::shared_ptr<Impl> impl_;
};

}  // namespace tensord::client
