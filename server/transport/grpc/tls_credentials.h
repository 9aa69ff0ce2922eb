#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "server/transport/grpc/certificates.h"

namespace tensord::server {

// Credentials of a server whose new connections get what `certificates` has at that time; open ones stay. With
// `is_mutual` clients must show a certificate of its roots.
std::shared_ptr<grpc::ServerCredentials> make_tls_credentials(std::shared_ptr<const Certificates> certificates,
                                                              bool is_mutual);

}  // namespace tensord::server
