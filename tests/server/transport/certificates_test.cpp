#include "server/transport/grpc/certificates.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "core/base/error.h"
#include "tests/server/temporary_folder.h"

namespace tensord::server::certificates_test {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

class CertificatesTest : public ::testing::Test {
 protected:
  // A self-signed certificate and its key.
  void make_pair(const std::string& name) const {
    const std::string command =
        concat("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout ",
               path(name + ".key"), " -out ", path(name + ".pem"), " -subj /CN=", name, " 2>/dev/null");
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string read(const std::string& name) const {
    std::ifstream in(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  void SetUp() override {
    make_pair("old");
    make_pair("new");
    write("cert", read("old.pem"));
    write("key", read("old.key"));
  }
  std::string error_of(const Certificates::Files& files) const {
    try {
      const Certificates certificates(files, 0s);
      return "no error";
    } catch (const Error& error) {
      return error.what();
    }
  }

  const fixtures::TemporaryFolder folder_{"certificates"};
  const Certificates::Files files_{path("cert"), path("key"), ""};
};

TEST_F(CertificatesTest, TheLastGoodPairServesUntilTheNewOneIsWhole) {
  int taken = 0, refused = 0;
  Certificates certificates(files_, 0s, [&](bool is_taken) { ++(is_taken ? taken : refused); });
  const std::string old_chain = read("old.pem"), new_chain = read("new.pem");
  EXPECT_EQ(certificates.current()->chain, old_chain);
  for (const std::string& broken : {std::string("nothing"), std::string(), new_chain.substr(0, new_chain.size() / 2),
                                    new_chain, new_chain + new_chain.substr(0, new_chain.size() / 2)}) {
    write("cert", broken);
    certificates.look();
    certificates.look();
    EXPECT_EQ(certificates.current()->chain, old_chain) << broken;
  }
  EXPECT_EQ(refused, 5);  // each is reported once
  std::filesystem::remove(path("cert"));
  certificates.look();
  EXPECT_EQ(certificates.current()->chain, old_chain);
  write("cert", new_chain);
  write("key", read("new.key"));
  certificates.look();
  EXPECT_EQ(certificates.current()->chain, new_chain);
  EXPECT_EQ(certificates.current()->key, read("new.key"));
  EXPECT_EQ(taken, 1);
  certificates.look();
  EXPECT_EQ(taken, 1);
}

TEST_F(CertificatesTest, AChainMayHaveSeveral) {
  write("cert", read("old.pem") + read("new.pem"));
  EXPECT_EQ(error_of(files_), "no error");
}

TEST_F(CertificatesTest, OldContentsAgainAreNoChange) {
  int changes = 0;
  Certificates certificates(files_, 0s, [&](bool) { ++changes; });
  const auto before = certificates.current();
  write("cert", read("old.pem"));
  certificates.look();
  EXPECT_EQ(certificates.current(), before);
  EXPECT_EQ(changes, 0);
}

TEST_F(CertificatesTest, WhatIsWrongAtTheStartIsAnErrorWithTheFlag) {
  EXPECT_EQ(error_of(files_), "no error");
  EXPECT_THAT(error_of({path("none"), path("key"), ""}), HasSubstr("--grpc-server-cert: cannot read"));
  EXPECT_THAT(error_of({path("key"), path("key"), ""}), HasSubstr("--grpc-server-cert: no PEM file"));
  EXPECT_THAT(error_of({path("cert"), path("cert"), ""}), HasSubstr("--grpc-server-key: no PEM file"));
  EXPECT_THAT(error_of({path("cert"), path("new.key"), ""}), HasSubstr("not that of the certificate"));
  EXPECT_THAT(error_of({path("cert"), path("key"), path("key")}), HasSubstr("--grpc-root-cert: no PEM file"));
  EXPECT_EQ(error_of({path("cert"), path("key"), path("new.pem")}), "no error");
}

}  // namespace
}  // namespace tensord::server::certificates_test
