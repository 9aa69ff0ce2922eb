#include "server/transport/grpc/certificates.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/mutex.h"

namespace tensord::server {
namespace {

// Files that changed less than this ago may still be being written.
constexpr auto kRest = std::chrono::milliseconds(100);
constexpr std::streamsize kMaxFileBytes = 1 << 20;

constexpr const char* kChainFlag = "--grpc-server-cert";
constexpr const char* kKeyFlag = "--grpc-server-key";
constexpr const char* kRootsFlag = "--grpc-root-cert";

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Bio = std::unique_ptr<BIO, Freed<BIO_free>>;
using Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;

std::string read_file(const char* flag, const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text(kMaxFileBytes, '\0');
  in.read(text.data(), kMaxFileBytes);
  text.resize(static_cast<size_t>(in.gcount()));
  check(in.eof() && !text.empty(), flag, ": cannot read ", path);
  return text;
}

Bio open_text(const std::string& text) { return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

// Encrypted keys are refused, because nobody is there to type the passphrase.
int no_pass_phrase(char*, int, int, void*) { return -1; }

// Parses PEM certificates and returns the first; the file must contain nothing else.
Certificate read_certificates(const char* flag, const std::string& text) {
  const Bio bio = open_text(text);
  ERR_clear_error();
  Certificate first(PEM_read_bio_X509(bio.get(), nullptr, no_pass_phrase, nullptr));
  check(first != nullptr, flag, ": no PEM file with a CERTIFICATE");
  for (;;) {
    const Certificate next(PEM_read_bio_X509(bio.get(), nullptr, no_pass_phrase, nullptr));
    if (next) continue;
    const bool is_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
    ERR_clear_error();
    check(is_end, flag, ": a CERTIFICATE in it is not whole");
    return first;
  }
}

}  // namespace

void check_fits(const Certificates::Pem& pem) {
  const Certificate certificate = read_certificates(kChainFlag, pem.chain);
  const Bio bio = open_text(pem.key);
  const Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_pass_phrase, nullptr));
  ERR_clear_error();
  check(key != nullptr, kKeyFlag, ": no PEM file with a PRIVATE KEY that can be read");
  const bool fits = X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  check(fits, kKeyFlag, ": the key is not that of the certificate in ", kChainFlag);
  if (!pem.roots.empty()) read_certificates(kRootsFlag, pem.roots);
}

Certificates::Certificates(Files files, std::chrono::seconds interval, Observer observer)
    : files_(std::move(files)), observer_(std::move(observer)) {
  Pem pem = read();
  check_fits(pem);
  current_ = std::make_shared<const Pem>(std::move(pem));
  if (interval.count() > 0) looks_ = std::make_unique<PeriodicThread>(interval, [this] { look(); });
}

Certificates::~Certificates() = default;

std::shared_ptr<const Certificates::Pem> Certificates::current() const {
  const MutexLock lock(mutex_);
  return current_;
}

Certificates::Pem Certificates::read() const {
  return {read_file(kChainFlag, files_.chain), read_file(kKeyFlag, files_.key),
          files_.roots.empty() ? std::string() : read_file(kRootsFlag, files_.roots)};
}

Certificates::Found Certificates::find() const {
  try {
    return {read(), ""};
  } catch (const Error& error) {
    return {{}, error.what()};
  }
}

void Certificates::look() {
  Found found = find();
  if (found.reason.empty() && found.pem == *current()) {
    refused_ = {};
    return;
  }
  std::this_thread::sleep_for(kRest);
  if (find() != found) return;  // the files are being written; the next check finds them complete
  try {
    if (found.reason.empty()) check_fits(found.pem);
  } catch (const Error& error) {
    found.reason = error.what();
  }
  if (found.reason.empty()) {
    {
      const MutexLock lock(mutex_);
      current_ = std::make_shared<const Pem>(std::move(found.pem));
    }
    refused_ = {};
    log(LogLevel::kInfo, "new certificates are taken", {{"certificate", files_.chain}});
    if (observer_) observer_(true);
  } else if (found != refused_) {
    log(LogLevel::kWarning, "new certificates are of no use; the old ones go on serving", {{"reason", found.reason}});
    refused_ = std::move(found);
    if (observer_) observer_(false);
  }
}

}  // namespace tensord::server
