#include "core/jit/formats/pt2/pt2.h"

#include <filesystem>
#include <fstream>
#include <set>

#include "core/base/error.h"
#include "core/jit/archive/zip_writer.h"
#include "core/jit/formats/graph_library.h"
#include "core/jit/formats/pt2/program.h"
#include "core/jit/ir/verify.h"

namespace tensord::jit {
namespace {

using pt2::Json;

constexpr std::string_view kModels = "models/", kWeights = "data/weights/", kConstants = "data/constants/";
constexpr const char* kClass = "__torch__.ExportedProgram";
// The method of a file with one program.
constexpr const char* kMethod = "forward";

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
    return zip->find("archive_format") || zip->find("serialized_exported_program.json");
  } catch (const Error&) {
    return false;  // a damaged archive: its reader says why
  }
}

// The names of the programs in it.
std::vector<std::string> program_names(const ZipArchive& zip) {
  std::vector<std::string> names;
  bool has_compiled = false;
  for (const ZipArchive::Entry& entry : zip.entries()) {
    has_compiled = has_compiled || entry.name.starts_with("data/aotinductor/");
    constexpr std::string_view kEnd = ".json";
    if (!entry.name.starts_with(kModels) || !entry.name.ends_with(kEnd)) continue;
    names.push_back(entry.name.substr(kModels.size(), entry.name.size() - kModels.size() - kEnd.size()));
  }
  if (names.empty() && has_compiled) {
    fail(ErrorCode::kUnimplemented, zip.path(),
         ": is a package of AOTInductor, which holds machine code for PyTorch; write ",
         "the program with torch.export.save");
  }
  if (names.empty()) fail(ErrorCode::kDataLoss, zip.path(), ": has no program in models/");
  return names;
}

void check_archive(const ZipArchive& zip) {
  if (!zip.find("archive_format")) {
    fail(ErrorCode::kUnimplemented, zip.path(),
         ": is of the layout that PyTorch wrote up to 2.7; load it with a newer ",
         "PyTorch and write it with torch.export.save again");
  }
  const std::string format = zip.read(zip.at("archive_format"));
  if (format != "pt2")
    fail(ErrorCode::kUnimplemented, zip.path(), ": archive format '", format.substr(0, 20), "' is not known");
  const ZipArchive::Entry* version = zip.find("archive_version");
  const std::string number = version ? zip.read(*version) : "0";
  if (number != "0") {
    fail(ErrorCode::kUnimplemented, zip.path(), ": archive version ", number.substr(0, 20),
         " is newer than the newest known, 0");
  }
  check_byte_order(zip);
}

// The same file with the tensors as they are now: whoever trains or runs a program writes to them, and to no others.
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

LoadedModel read(const std::string& path, const ReadOptions& options) {
  const std::shared_ptr<const ZipArchive> zip = ZipArchive::open(path);
  check_archive(*zip);
  const std::vector<std::string> names = program_names(*zip);
  pt2::Payloads payloads(zip, options.copies_tensors);
  ModuleTree tree(kClass);
  LoadedModel model;
  std::vector<pt2::Program> programs;
  std::set<const TensorImpl*> seen;
  for (const std::string& name : names) {
    const std::string entry = concat(kModels, name, ".json");
    const std::string source = concat(path, ": ", entry);
    // Names of one program are the model's own; several could have the same.
    programs.emplace_back(pt2::parse_json(zip->read(zip->at(entry)), source), source,
                          names.size() == 1 ? "" : name + ".");
    const auto weights = payloads.read(std::string(kWeights), name + "_weights_config.json");
    const auto constants = payloads.read(std::string(kConstants), name + "_constants_config.json");
    programs.back().add_tensors(weights, constants, tree);
    for (const auto& [unused, payload] : weights) {
      if (payload.requires_grad && seen.insert(payload.tensor.impl()).second)
        model.with_gradient.push_back(payload.tensor);
    }
  }
  auto library = std::make_unique<GraphLibrary>();
  model.object = tree.finish(*library);
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string method = names.size() == 1 ? kMethod : names[i];
    std::unique_ptr<Function> function = programs[i].make_method(method, tree, options.copies_tensors);
    verify(*function->graph);
    library->add_method(kClass, method, std::move(function));
    model.signatures[method] = programs[i].signature();
  }
  model.functions = std::move(library);
  model.file = std::make_shared<ArchiveFile>(zip);
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
