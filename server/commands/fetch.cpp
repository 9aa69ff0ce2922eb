#include "server/fetch/fetch.h"

#include <signal.h>

#include <CLI/CLI.hpp>

#include <filesystem>
#include <iostream>
#include <memory>

#include "core/base/error.h"
#include "core/base/printable.h"
#include "server/commands/commands.h"
#include "server/fetch/checksum.h"
#include "server/fetch/http_get.h"

namespace tensord::server {
namespace {

constexpr uint64_t kDefaultFetchBytes = uint64_t{1} << 40;
constexpr int kMaxFetchRetries = 100;

struct FetchCommand {
  FetchOptions options{.source = {}, .destination = {}, .max_bytes = kDefaultFetchBytes};
  std::vector<std::string> checksums;  // "HEX" or "NAME=HEX"
  bool skips_existing = false;
  int timeout_secs = 60;
};

void read_checksums(FetchCommand& command) {
  for (const std::string& text : command.checksums) {
    const size_t mark = text.rfind('=');
    const std::string name = mark == std::string::npos ? "" : text.substr(0, mark);
    std::string hex = mark == std::string::npos ? text : text.substr(mark + 1);
    for (char& c : hex) c = static_cast<char>(c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
    if (!is_sha256(hex)) throw CommandError(kExitUsage, "--sha256: expected 64 hexadecimal digits, or NAME=DIGITS");
    command.options.sha256[name] = hex;
  }
}

int run_fetch(FetchCommand& command) {
  read_checksums(command);
  signal(SIGPIPE, SIG_IGN);  // a connection that ends is an error of a write
  set_fetch_timeout(std::chrono::seconds(command.timeout_secs));
  const std::string path = fetch_path(command.options);
  if (command.skips_existing && std::filesystem::exists(path)) {
    std::cout << to_printable(path) << " is there already\n";
    return 0;
  }
  try {
    const Fetched done = fetch(command.options, [](const std::string& name, uint64_t size) {
      std::cout << to_printable(name) << "  " << size << " bytes" << std::endl;
    });
    std::cout << to_printable(done.path) << ": " << done.files << (done.files == 1 ? " file, " : " files, ")
              << done.size_bytes << " bytes\n";
  } catch (const TransientHttpError& error) {
    throw CommandError(kExitUnreachable, error.what());
  }
  return 0;
}

}  // namespace

void add_fetch_command(CLI::App& app, int* exit_code) {
  const auto fetched = std::make_shared<FetchCommand>();
  CLI::App* command = app.add_subcommand(
      "fetch", "Bring a model from a web server, S3 or a hub to this machine; an interrupted fetch is continued");
  command
      ->add_option("SOURCE", fetched->options.source,
                   "file:///PATH, https://HOST/FILE, s3://BUCKET/KEY, s3://BUCKET/PREFIX/ or "
                   "hf://OWNER/NAME[@REVISION][/FILE]")
      ->required();
  command->add_option("DESTINATION", fetched->options.destination, "The file or folder to make; it must not exist")
      ->required();
  command
      ->add_option("--sha256", fetched->checksums,
                   "The file's checksum, or NAME=CHECKSUM of a file in a folder; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--include", fetched->options.included,
                   "Only files of a folder whose names match this pattern, such as 'onnx/*.onnx'; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--max-size", fetched->options.max_bytes, "The most bytes to bring; default 1 TB")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  command
      ->add_option("--retries", fetched->options.retries,
                   "Tries after the first for each file, where a server fails or a connection ends; default 4")
      ->check(CLI::Range(0, kMaxFetchRetries));
  command
      ->add_option("--timeout", fetched->timeout_secs,
                   "Seconds to connect, and until the answer begins; from then on it has to bring 1 KiB a second in as "
                   "many seconds")
      ->check(CLI::Range(1, 86400))
      ->capture_default_str();
  command->add_flag("--skip-existing", fetched->skips_existing, "Succeed at once if the destination exists");
  command->footer(
      "Sources:\n"
      "  https://HOST/resnet.onnx    one file; also http://, with redirects\n"
      "  s3://models/resnet/         all objects below a prefix; without the slash, one object\n"
      "  hf://owner/name@v1          a repository of Hugging Face's hub; hf://owner/name/model.onnx is one file\n"
      "  file:///srv/models/resnet   a file or folder of this machine\n"
      "\n"
      "Variables:\n"
      "  AWS_ACCESS_KEY_ID           with AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and AWS_REGION: for S3\n"
      "  AWS_ENDPOINT_URL            another store that speaks S3\n"
      "  HF_TOKEN                    for a hub, which HF_ENDPOINT names\n"
      "  SSL_CERT_FILE               authorities to trust instead of the system's");
  command->callback([fetched, exit_code] { *exit_code = run_fetch(*fetched); });
}

}  // namespace tensord::server
