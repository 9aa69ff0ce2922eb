#include "server/transport/grpc/tls_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include "core/base/error.h"
#include "core/base/mutex.h"

namespace tensord::server {
namespace {

// Lets gRPC ask for certificates at every handshake. Only its C interface has a callback for that.
class TlsCredentials final : public grpc::ServerCredentials {
 public:
  TlsCredentials(std::shared_ptr<const Certificates> certificates, bool is_mutual)
      : certificates_(std::move(certificates)) {
    const auto request = is_mutual ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                   : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(request, &TlsCredentials::fetch, this));
    check_internal(credentials_ != nullptr, "no TLS credentials");
  }
  // The server holds a reference as long as it uses the callback.
  ~TlsCredentials() override { grpc_server_credentials_release(credentials_); }

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  static grpc_ssl_certificate_config_reload_status fetch(void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<TlsCredentials*>(self)->fetch(config);
  }

  grpc_ssl_certificate_config_reload_status fetch(grpc_ssl_server_certificate_config** config) {
    const MutexLock lock(mutex_);
    std::shared_ptr<const Certificates::Pem> pem = certificates_->current();
    if (pem == given_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair{pem->key.c_str(), pem->chain.c_str()};
    // gRPC requires root certificates even if clients need no certificate; they are unused then.
    const std::string& roots = pem->roots.empty() ? pem->chain : pem->roots;
    *config = grpc_ssl_server_certificate_config_create(roots.c_str(), &pair, 1);
    given_ = std::move(pem);
    return *config ? GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW : GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_FAIL;
  }

  const std::shared_ptr<const Certificates> certificates_;
  grpc_server_credentials* credentials_ = nullptr;
  Mutex mutex_;
  std::shared_ptr<const Certificates::Pem> given_ TENSORD_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> make_tls_credentials(std::shared_ptr<const Certificates> certificates,
                                                              bool is_mutual) {
  return std::make_shared<TlsCredentials>(std::move(certificates), is_mutual);
}

}  // namespace tensord::server
