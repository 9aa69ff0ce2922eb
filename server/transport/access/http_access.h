#pragma once

#include <optional>

#include "server/http/message.h"
#include "server/transport/access/access.h"

namespace tensord::server {

// The rejection of an HTTP request that lacks a token for the group `statistics`: 401, or 403 if its token is for other
// groups. None: the request may continue; health requests always may. The token is sent as `Bearer TOKEN`, or as the
// password of any user, which is what browsers ask for when they open a page.
std::optional<HttpAnswer> refuse_http(const AccessPolicy& access, const HttpHead& head);

// The same for a call of the REST protocol: the header of its group, and a token for the group if tokens are
// configured.
std::optional<HttpAnswer> refuse_call(const AccessPolicy& access, const HttpHead& head, CallGroup group);

}  // namespace tensord::server
