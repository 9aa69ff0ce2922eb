#pragma once

#include <optional>

#include "server/http/message.h"
#include "server/transport/access/access.h"

namespace tensord::server {

// What an HTTP request without a token for the group `statistics` is answered: 401, or 403 with one for other groups.
// None: it may go on; health always may. The token comes as `Bearer TOKEN`, or as the password of any user, which is
// what browsers ask for.
std::optional<HttpAnswer> refuse_http(const AccessPolicy& access, const HttpHead& head);

// The same of a call of the REST protocol: the header that its group needs, and, where tokens are, a token for its
// group.
std::optional<HttpAnswer> refuse_call(const AccessPolicy& access, const HttpHead& head, CallGroup group);

}  // namespace tensord::server
