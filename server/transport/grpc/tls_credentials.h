#pragma once

#include <grpcpp/security/server_credentials.h>

#include <memory>

#include "server/transport/grpc/certificates.h"

namespace tensord::server {

// Server credentials that use the current contents of `certificates` for new connections. With `is_mutual`, clients
// must present a certificate signed by its roots.
std::shared_ptr<grpc::ServerCredentials> make_tls_credentials(std::shared_ptr<const Certificates> certificates,
                                                              bool is_mutual);

}  // namespace tensord::server
