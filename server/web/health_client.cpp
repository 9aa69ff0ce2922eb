#include "server/web/health_client.h"

#include <httplib.h>

#include "core/base/error.h"

namespace tensord::server {

int ask_health(const std::string& address, const std::string& path, int timeout_secs) {
  httplib::Client client("http://" + address);
  client.set_connection_timeout(timeout_secs);
  client.set_read_timeout(timeout_secs);
  const httplib::Result answer = client.Get(path);
  if (!answer) fail(ErrorCode::kUnavailable, address, ": no answer (", httplib::to_string(answer.error()), ")");
  return answer->status;
}

}  // namespace tensord::server
