#include "core/jit/importers/pt2/pt2.h"

#include <filesystem>
#include <fstream>
#include <set>

#include "core/base/error.h"
#include "core/jit/archive/zip_writer.h"
#include "core/jit/importers/graph_library.h"
#include "core/jit/importers/pt2/program.h"
#include "core/jit/ir/verify.h"

namespace tensord::jit {
namespace {

using pt2::Json;

constexpr std::string_view kModels = "models/", kWeights = "data/weights/", kConstants = "data/constants/";
constexpr const char* kClass = "__torch__.ExportedProgram";
// Name of the method in a file with one program.
constexpr const char* kMethod = "forward";

// Layout of PyTorch up to 2.7: entries with fixed names, tensors written by torch.save.
constexpr const char* kOldProgram = "serialized_exported_program.json";
constexpr const char* kOldWeights = "serialized_state_dict.pt";
constexpr const char* kOldConstants = "serialized_constants.pt";

class ArchiveFile final : public ModelFile {
 public:
  explicit ArchiveFile(std::shared_ptr<const ZipArchive> zip) : zip_(std::move(zip)) {}
  void check_unchanged() const override { zip_->check_unchanged(); }
  size_t release_pages() const override { return zip_->release_pages(); }

 private:
  std::shared_ptr<const ZipArchive> zip_;
};

bool probe(const std::string& path) {
  char magic[4] = {};
  std::ifstream file(path, std::ios::binary);
  if (!file.read(magic, sizeof magic) || std::string_view(magic, 4) != "PK\3\4") return false;
  try {
    const auto zip = ZipArchive::open(path);
    return zip->find("archive_format") || zip->find(kOldProgram);
  } catch (const Error&) {
    return false;  // a damaged archive, which the reader reports
  }
}

// A program in an archive, and where its tensors are listed.
struct Entry {
  std::string name;
  std::string program;
};

std::vector<Entry> programs_of(const ZipArchive& zip) {
  if (zip.find(kOldProgram)) return {{kMethod, kOldProgram}};
  std::vector<Entry> programs;
  bool has_compiled = false;
  for (const ZipArchive::Entry& entry : zip.entries()) {
    has_compiled = has_compiled || entry.name.starts_with("data/aotinductor/");
    constexpr std::string_view kEnd = ".json";
    if (!entry.name.starts_with(kModels) || !entry.name.ends_with(kEnd)) continue;
    programs.push_back(
        {entry.name.substr(kModels.size(), entry.name.size() - kModels.size() - kEnd.size()), entry.name});
  }
  if (programs.empty() && has_compiled) {
    fail(ErrorCode::kUnimplemented, zip.path(), ": is a package of AOTInductor, which holds machine code for PyTorch; ",
         "write the program with torch.export.save");
  }
  if (programs.empty()) fail(ErrorCode::kDataLoss, zip.path(), ": has no program in models/");
  return programs;
}

void check_archive(const ZipArchive& zip) {
  check_byte_order(zip);
  if (zip.find(kOldProgram)) return;
  const std::string format = zip.read(zip.at("archive_format"));
  if (format != "pt2") {
    fail(ErrorCode::kUnimplemented, zip.path(), ": archive format '", format.substr(0, 20), "' is not known");
  }
  const ZipArchive::Entry* version = zip.find("archive_version");
  const std::string number = version ? zip.read(*version) : "0";
  if (number != "0") {
    fail(ErrorCode::kUnimplemented, zip.path(), ": archive version ", number.substr(0, 20),
         " is newer than the newest known, 0");
  }
}

// Whether its tensors are pickled, as in PyTorch up to 2.8.
bool has_pickled_tensors(const ZipArchive& zip, const Entry& entry) {
  return entry.program == kOldProgram || zip.find(concat(kWeights, entry.name, ".pt"));
}

std::map<std::string, pt2::Payload> read_tensors(const ZipArchive& zip, const Entry& entry, pt2::Payloads& payloads,
                                                 bool is_weights) {
  const std::string folder(is_weights ? kWeights : kConstants);
  if (entry.program == kOldProgram) return payloads.read_pickled(is_weights ? kOldWeights : kOldConstants);
  const std::string pickled = concat(folder, entry.name, ".pt");
  if (zip.find(pickled)) return payloads.read_pickled(pickled);
  return payloads.read(folder, concat(entry.name, is_weights ? "_weights_config.json" : "_constants_config.json"));
}

// Writes the same file with the current values of the tensors.
void write(const std::string& path, const ZipArchive& source, const std::map<std::string, Storage>& storages) {
  const std::string stem = std::filesystem::path(path).stem().string();
  const std::string root = (stem.empty() ? "archive" : stem) + "/";
  ZipWriter writer(path);
  for (const ZipArchive::Entry& entry : source.entries()) {
    const auto known = storages.find(entry.name);
    const Storage storage = known == storages.end() ? source.storage(entry) : known->second;
    writer.add(root + entry.name, {static_cast<const char*>(storage->data()), storage->size_bytes()});
  }
  writer.finish();
}

// Several programs may share a tensor, so all of them are processed together.
void replace_weights(const NewWeights& given, const std::vector<pt2::Program>& programs,
                     std::vector<std::map<std::string, pt2::Payload>>& weights, pt2::Payloads& payloads) {
  std::vector<std::pair<std::string, Tensor>> members;
  for (size_t i = 0; i < programs.size(); ++i) {
    for (const auto& [name, payload] : weights[i]) members.emplace_back(programs[i].prefix() + name, payload.tensor);
  }
  const auto replaced = given.match(members);
  for (auto& of_program : weights) payloads.replace(of_program, replaced);
}

LoadedModel read(const std::string& path, const ReadOptions& options) {
  const std::shared_ptr<const ZipArchive> zip = ZipArchive::open(path, {.copies_file = options.copies_files});
  check_archive(*zip);
  const std::vector<Entry> entries = programs_of(*zip);
  const bool is_alone = entries.size() == 1;
  pt2::Payloads payloads(zip, options.copies_tensors);
  ModuleTree tree(kClass);
  LoadedModel model;
  std::vector<pt2::Program> programs;
  std::vector<std::map<std::string, pt2::Payload>> weights;  // by program
  std::set<const TensorImpl*> seen;
  bool has_pickled = false;
  for (const Entry& entry : entries) {
    const std::string source = concat(path, ": ", entry.program);
    // With one program, names are the model's own; several programs may use the same names.
    programs.emplace_back(pt2::parse_json(zip->read(zip->at(entry.program)), source), source,
                          is_alone ? "" : entry.name + ".");
    has_pickled = has_pickled || has_pickled_tensors(*zip, entry);
    weights.push_back(read_tensors(*zip, entry, payloads, true));
  }
  if (options.weights) replace_weights(*options.weights, programs, weights, payloads);
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto constants = read_tensors(*zip, entries[i], payloads, false);
    programs[i].add_tensors(weights[i], constants, tree);
    for (const auto& [unused, payload] : weights[i]) {
      if (!payload.requires_grad || !seen.insert(payload.tensor.impl()).second) continue;
      model.with_gradient.push_back(payload.tensor);
    }
  }
  auto library = std::make_unique<GraphLibrary>();
  model.object = tree.finish(*library);
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string method = is_alone ? kMethod : entries[i].name;
    std::unique_ptr<Function> function = programs[i].make_method(method, tree, options.copies_tensors);
    try {
      verify(*function->graph);
    } catch (const Error& error) {
      // Values of wrong types for the operators: PyTorch did not write this program.
      fail(ErrorCode::kDataLoss, path, ": ", entries[i].program, ": ", error.what());
    }
    library->add_method(kClass, method, std::move(function));
    model.signatures[method] = programs[i].signature();
  }
  model.functions = std::move(library);
  model.file = std::make_shared<ArchiveFile>(zip);
  if (has_pickled) {
    model.why_not_saved = concat("programs in the layout of PyTorch up to 2.8 are not written; load ", zip->path(),
                                 " with a newer PyTorch and write it with torch.export.save");
    return model;
  }
  model.save = [zip, storages = payloads.storages()](const std::string& target) { write(target, *zip, storages); };
  return model;
}

}  // namespace

const ModelFormat kPt2Format{
    .name = "exported program",
    .platform = "pytorch_libtorch",
    .file_name = "model.pt2",
    .probe = probe,
    .read = read,
};

}  // namespace tensord::jit
