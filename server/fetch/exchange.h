#pragma once

#include <functional>
#include <string_view>

#include "server/fetch/remote_file.h"

namespace tensord::server {

// One GET with redirects, each hop with the fields that its origin may see. `extra` goes along on every hop. `on_head`
// is called for the answer that is no redirect, and returns false to leave its body. Throws TransientHttpError where
// another try may succeed (connections, 408, 429, 5xx), otherwise Error: kNotFound, kFailedPrecondition (401, 403),
// kUnavailable.
HttpReply exchange(const HttpUrl& url, const RemoteFiles& remote, const HttpFields& extra,
                   const std::function<bool(const HttpReply&)>& on_head,
                   const std::function<bool(std::string_view)>& on_bytes);

// Calls `once` until it throws no TransientHttpError, `retries` times more at most, with growing pauses between.
void with_retries(int retries, const std::function<void()>& once);

}  // namespace tensord::server
