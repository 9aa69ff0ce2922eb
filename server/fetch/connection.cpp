#include "server/fetch/connection.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>
#include <poll.h>

#include <cerrno>
#include <cstring>

namespace tensord::server {
namespace {

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free_all(bio); }
};
struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

// The host of "host:80" or "[::1]:80".
std::string host_of(const std::string& authority) {
  if (authority.starts_with('[')) return authority.substr(1, authority.find(']') - 1);
  return authority.substr(0, authority.find(':'));
}

std::string with_port(const HttpUrl& url) {
  const size_t end = url.authority.starts_with('[') ? url.authority.find(']') : 0;
  const bool has_port = url.authority.find(':', end) != std::string::npos;
  return has_port ? url.authority : concat(url.authority, url.scheme == "https" ? ":443" : ":80");
}

// The last error of OpenSSL or of the system, in words.
std::string last_error(SSL* ssl) {
  const long verified = ssl ? SSL_get_verify_result(ssl) : X509_V_OK;
  const int number = errno;
  const unsigned long first = ERR_peek_error(), code = ERR_peek_last_error();
  if (verified != X509_V_OK) return concat("the certificate: ", X509_verify_cert_error_string(verified));
  if (first != 0 && ERR_SYSTEM_ERROR(first)) return std::strerror(ERR_GET_REASON(first));
  if (code != 0 && ERR_reason_error_string(code) != nullptr) return ERR_reason_error_string(code);
  return number != 0 ? std::strerror(number) : "the connection was closed";
}

}  // namespace

struct FetchConnection::Impl {
  explicit Impl(const HttpUrl& url) : url(url) {}

  [[noreturn]] void fail_transient(const std::string& what) const {
    throw TransientHttpError(ErrorCode::kUnavailable, concat(url.printable(), ": ", what));
  }

  void wait(Time until) const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    int fd = -1;
    BIO_get_fd(bio.get(), &fd);
    pollfd one{.fd = fd, .events = 0, .revents = 0};
    if (BIO_should_read(bio.get())) one.events |= POLLIN;
    if (BIO_should_write(bio.get()) || BIO_should_io_special(bio.get())) one.events |= POLLOUT;
    if (left.count() <= 0 || poll(&one, 1, static_cast<int>(left.count())) == 0) fail_transient("no answer in time");
  }

  // Calls `step` until it makes progress; its result is above 0 then. Returns 0 at the end of the connection.
  template <class Step>
  int until_done(const char* what, Time until, const Step& step) const {
    for (;;) {
      ERR_clear_error();
      errno = 0;
      const int result = step();
      if (result > 0) return result;
      if (BIO_should_retry(bio.get())) {
        wait(until);
        continue;
      }
      // Over TLS an end without a close_notify may be an attacker's.
      const bool is_end = result == 0 && (ssl == nullptr || (SSL_get_shutdown(ssl) & SSL_RECEIVED_SHUTDOWN) != 0);
      if (what == nullptr && is_end) return 0;
      fail_transient(concat(what ? what : "Connection lost: ", last_error(ssl)));
    }
  }

  void use_tls(const std::string& host) {
    context.reset(SSL_CTX_new(TLS_client_method()));
    check_internal(context != nullptr, "no TLS from OpenSSL");
    SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
    SSL_CTX_set_default_verify_paths(context.get());
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    BIO* tls = BIO_new_ssl(context.get(), /*client=*/1);
    check_internal(tls != nullptr, "no TLS from OpenSSL");
    bio.reset(BIO_push(tls, bio.release()));
    BIO_get_ssl(tls, &ssl);
    // An address in numbers is checked as such, and is no server name.
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host.c_str()) == 1) return;
    check_internal(SSL_set1_host(ssl, host.c_str()) == 1 && SSL_set_tlsext_host_name(ssl, host.c_str()) == 1,
                   "no TLS from OpenSSL");
  }

  const HttpUrl url;
  std::unique_ptr<SSL_CTX, FreeContext> context;
  std::unique_ptr<BIO, FreeBio> bio;
  SSL* ssl = nullptr;  // part of `bio`; null without TLS
};

FetchConnection::FetchConnection(const HttpUrl& url, Time until) : impl_(std::make_unique<Impl>(url)) {
  impl_->bio.reset(BIO_new_connect(with_port(url).c_str()));
  check_internal(impl_->bio != nullptr, "no connection from OpenSSL");
  BIO* const socket = impl_->bio.get();
  BIO_set_nbio(socket, 1);
  impl_->until_done("Connection failed: ", until, [&] { return static_cast<int>(BIO_do_connect(socket)); });
  if (url.scheme != "https") return;
  impl_->use_tls(host_of(url.authority));
  impl_->until_done("TLS failed: ", until, [&] { return static_cast<int>(BIO_do_handshake(impl_->bio.get())); });
}

FetchConnection::~FetchConnection() = default;

void FetchConnection::send(std::string_view bytes, Time until) {
  while (!bytes.empty()) {
    const int count = impl_->until_done("Connection lost: ", until, [&] {
      return BIO_write(impl_->bio.get(), bytes.data(), static_cast<int>(bytes.size()));
    });
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

size_t FetchConnection::receive(char* to, size_t max, Time until) {
  return static_cast<size_t>(
      impl_->until_done(nullptr, until, [&] { return BIO_read(impl_->bio.get(), to, static_cast<int>(max)); }));
}

}  // namespace tensord::server
